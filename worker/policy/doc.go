// Package policy says what may leave a worker. [NewRedactor] makes a [Redactor] of the secrets that a process was
// configured with; whatever becomes a record, an event, a result or a log line goes through it.
//
// A Redactor knows exact values and guesses nothing: a secret that it was not told, or that was taken apart,
// translated, compressed or encrypted, passes.
package policy
