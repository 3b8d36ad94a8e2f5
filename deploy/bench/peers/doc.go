//go:build linux

// Command peers runs the job queues Asynq (on redis-server) and River (on PostgreSQL, synchronous_commit off) beside Longshore's workload,
// by turns in one run, and prints how many runs a second each works, the processor time of a run, and the ratios:
//
//	cd deploy/bench/peers && go run .
//
// A run of Longshore's workload is five units of work: three model calls and two tool calls. For a job queue it is five jobs of 500 bytes
// each, one after the other: each enqueues the next, as a program must do there whose work is not to be done again when its worker dies.
// The queues store nothing else: no log of the run, no events, no result, no state that a person may look at. Longshore stores all of that
// for every run, so the ratio says what it costs in comparison with nothing but a queue.
//
// Servers are fresh in each round. The time of Longshore is that after the warm-up, that of the queues the whole: there each job goes to the
// end of the queue, and all runs end together. The processor time is that of workers and servers for all runs.
// Longshore is measured by the part "throughput" of deploy/bench, which is built first, and its floor with it. A peer whose server the
// machine does not have is left out, and the output says so.
//
// This is a module of its own: neither Longshore nor a program that imports it depends on what is compared here.
package main
