// Package messages is the contract: everything that travels between backends, dispatcher, workers and watchers,
// and the subjects it travels on.
//
// A backend makes a [Task] and publishes it on [Ref.TaskSubject], or sends it with the client of package dispatcher. [Event]
// values tell what the run does, and [AgentResult] how it ended. [Definition] is what an agent is. Errors are
// [FieldError], of an input, and [RunError] with one of the [Codes].
//
// What most backends do not need is in packages below it: package record has the log of a run, package control what operators ask the
// dispatcher for and what it answers, package queue the lanes, quotas and reasons for which runs wait, and package logentry the
// lines of logs.
//
// Everything that comes from outside is decoded by [strict.Decode], which is stricter than encoding/json: unknown, doubled
// and other-case keys, null, invalid UTF-8 and trailing data are errors that name the field ([FieldError]).
//
// The package links only the standard library and does no I/O.
package messages
