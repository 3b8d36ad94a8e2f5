// Package report shows people how runs come along, and asks them what a run waits for. A [Reporter] shows the events of
// runs, on a terminal in place and elsewhere as lines; [WatchAndReport] follows one run to its end, [RunTasks] submits tasks
// and follows them all.
package report
