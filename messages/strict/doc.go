// Package strict reads JSON that others wrote, and checks the text in it.
//
//	var t Task
//	err := strict.Decode(body, &t) // a *strict.FieldError such as "limits.maxSteps: must be an integer, not a string"
//
// It is stricter than encoding/json ([Decode] says how), bounded in depth, and names the field that is wrong. It links only
// the standard library and [github.com/longshore-run/longshore/messages/jsonscan], and does no I/O.
package strict
