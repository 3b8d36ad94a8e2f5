// Package cli is the tree of commands that need a client and nothing else of the fleet. Below it stand, each knowing only those
// before it: render, the rules of output; report, how runs are shown while they come along; conn, what commands share; and the
// commands by what they are about: runs, catalog, admin, top.
//
// [Commands] makes the commands; [Group] puts a tree below headings; [Usage], called on the whole tree, turns every mistake in
// using it into a [render.UsageError]. A command that shows a run that ended badly says so itself and returns a
// [render.RunFailed]. Every other error is one line that says what to do next.
package cli
