// Package runlog is what any party may do with a run's log: append to it, read it, settle its end, add a control
// record, run an errand, sweep. It needs no owner, no model and no tool; the worker's loop builds on it.
//
// A [Log] holds the logs of all runs; package bus has the one on JetStream, [Memory] the one in memory. A [Controller]
// is the log together with the queue and the events it feeds. The rules that it keeps are those of docs/protocol.md.
package runlog
