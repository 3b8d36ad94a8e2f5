// Package memory is what dispatchers are asked about long-term memory, as it travels: items, pages, searches, and what may be
// written. The operations are in messages/control. Standard library and messages/strict only.
//
// Every request has a Check, which fills in the default of the tenant and of what was left out; its error is a *messages.FieldError.
package memory
