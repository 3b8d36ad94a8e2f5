// Package policy says what may leave a worker, and what runs may do.
//
// [NewRedactor] makes a [Redactor] of the secrets that a process was configured with; whatever becomes a record, an event, a
// result or a log line goes through it. A Redactor knows exact values and guesses nothing: a secret that it was not told, or
// that was taken apart, translated, compressed or encrypted, passes.
//
// [NewRules] makes [Rules] of the policies of the fleet, a tenant and an agent, which hold together: the stricter wins. Rules are
// pure: they judge a tool call, its arguments, or a text, and say what to use in its place. The runner asks them before
// anything is recorded or called, and records what they found.
package policy
