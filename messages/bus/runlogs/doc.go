// Package runlogs stores the logs of runs, and publishes the events that follow from them: what a runlog.Controller needs of
// the bus.
//
// A process makes one [Store] with [New]. It is both the runlog.Log and the runlog.Events of the process's Controller.
//
// What it guarantees: an append happens once or not at all, also when its answer is lost, because the entry's id is looked for
// before it is sent again. Where the Bus has control keys, an entry that says what people decided counts only with a signature
// of one of them. Events of a run are stored in order, each once.
//
// What it does not do: it does not read events back, which is the role of the package events, and it holds no state that a
// restart could lose.
package runlogs
