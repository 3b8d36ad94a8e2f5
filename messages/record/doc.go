// Package record is what a run's log holds: facts, and how they are written and read.
//
// A log is [Entry] values, each one or more [Record] values that became true together; [Head] is the part of an entry that
// can be read without opening it. [Events] derives from an entry what the world may see of it.
//
//	e := &record.Entry{Head: head, Records: []record.Record{&record.StepStarted{Step: 1}}}
//	for event := range record.EachEvent(run, e, wanted) { … }
//
// The one table of kinds says how each is read and which events it has. Only dispatchers and workers need this package: what
// backends and watchers read is in package messages. It links the standard library alone and does no I/O.
package record
