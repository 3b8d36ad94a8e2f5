// Package messages is the contract: everything that travels between backends, dispatcher, workers and watchers,
// and the subjects it travels on.
//
// A backend makes a [Task] and publishes it on [Ref.TaskSubject]. The run that the task becomes is a log of
// [Entry] values, each one or more [Record] values that became true together; [Head] is the part of an entry that
// can be read without opening it. [Events] derives from an entry what the world may see of it. [AgentResult] is how
// a run ended.
//
// Everything that comes from outside is decoded by [strict.Decode], which is stricter than encoding/json: unknown, doubled
// and other-case keys, null, invalid UTF-8 and trailing data are errors that name the field ([FieldError]).
//
// The package links only the standard library and does no I/O.
package messages
