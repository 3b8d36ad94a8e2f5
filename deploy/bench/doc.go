// Command bench measures how fast Longshore is on this machine: `go run ./deploy/bench`. It prints one JSON object a
// line, the unit of a number in its name, and last a summary with the targets. It exits with 1 when it could not
// measure; a missed target is a finding, not a failure.
//
// The work is always the same: one task is three model calls and two tool calls, 500 bytes each, of a scripted model
// and a tool that does nothing, with every record and event stored in files. Servers, worker and the driver that
// submits and watches are processes of their own on TCP, all of this binary; only the embedded latency has them in
// one. Redis is the redis-server of the PATH, else the embedded double, and the output says which.
//
// Besides the throughput it measures the floor: a program that sends what a run sends (the same appends with
// compare-and-set, events, Redis writes, pull and double ack, of the sizes that were found in the streams) with the
// client libraries alone. What counts is the ratio of the two, for it hardly depends on the machine.
//
// The latency has the same floor, by turns with it, for one run at a time: a task is submitted and stored, a standing request pulls it, the
// appends follow each other, each after the answer to the one before, and the last event follows the answers to all others. Its client
// hears that event by a subscription that stands and then reads the last entry of the log, as the event may be one that the stream refused and
// has the result shortened. The floor writes no states to Redis here: no run waits for them.
//
// The part "whole" has a dispatcher in a process of its own, with its run index and its metrics, and an auditor, and counts them too: apart,
// in the sum, and how far the index was behind when the last run ended. The part "idle", which is measured only alone, prints what processes
// use that have nothing to do.
//
// With -replicas the servers are so many in one process that replicate each stream, and with -partitions logs, events and tasks are divided, for the
// parts "whole" and "throughput". Each process is connected to one of the servers.
//
// The part "memory" stores the subjects of runs and nothing else, a million of them, and measures what NATS holds of them. It is measured
// only alone, as "idle" is.
//
// The part "growth" has small runs worked, of one model call each unless -calls says how many, and stops at each of the sizes of -retained:
// memory of NATS and of each process, bytes on disk, and what it takes to sweep, list, search, count, look for stuck runs, rebuild the run index
// and restart. What costs as many times more as there are more runs is linear in them: the line "growthOfFirst" shows it. At the last size it
// rests, and measures what NATS then holds: right after the work that is also the ids of the last two minutes, and what is in which block.
//
// The part "long" has runs of few steps and of many, and tells what a step costs; "wide" the same runs of one tenant and of many; "fleet" the
// same runs worked by one worker and by more; "retention" the same runs without purges, and then with each purged a moment after its end. Their
// costs are those of all processes until the run index has every event.
//
// Messages and bytes per run are those of the worker's connection as the server counts them: to the server each
// append, event, ack and pull request; from it each acknowledgement and task. CPU time is that of the worker, of the
// servers' process and of Redis. Both are of all runs, warm-up included; the driver that submits and watches is not in
// them. While the machine does other work too, throughputOfFloorByCpu, the ratio of the CPU times, is the steadier one.
package main
