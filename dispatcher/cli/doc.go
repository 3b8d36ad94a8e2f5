// Package cli has the commands that need a client and nothing else of the fleet, and the [Reporter], which shows a
// person how runs come along.
//
// [Commands] makes the commands; [Usage], called on the whole tree of commands, turns every mistake in using them into
// a [UsageError]. A command that shows a run that ended badly says so itself and returns a [RunFailed]. Every other
// error is one line that says what to do next. Texts of models and tools never reach a terminal as they are: whatever
// could steer it is written out.
package cli
