// Package runs has the commands that submit tasks, follow runs, decide for those that wait, look back at them, and judge them
// by suites.
package runs
