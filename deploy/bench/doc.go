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
// Messages and bytes per run are those of the worker's connection as the server counts them: to the server each
// append, event, ack and pull request; from it each acknowledgement and task. CPU time is that of the worker, of the
// servers' process and of Redis. Both are of all runs, warm-up included; the driver that submits and watches is not in
// them. While the machine does other work too, throughputOfFloorByCpu, the ratio of the CPU times, is the steadier one.
package main
