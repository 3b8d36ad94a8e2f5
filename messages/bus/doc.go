// Package bus is Longshore on NATS JetStream: the streams and their settings, the logs of runs, the queue of tasks,
// the events, the agents, hints. No other package knows a JetStream setting.
//
// [Connect] opens a connection with the options that the guarantees below need. A dispatcher calls [Setup] once;
// everybody calls [Open], which creates nothing. A [Bus] implements runlog.Log, runlog.Queue and runlog.Events.
//
// What it guarantees: an append happens once or not at all, also when its answer is lost, because the entry's id is
// looked for before it is sent again. Whatever else is published is stored at least once; where twice would harm,
// the stream itself refuses the second. Every wait ends with its context, and every retry within [Config].Budget.
//
// What it does not do: it holds no state of its own that a restart could lose, and an ack of a [Delivery] proves
// nothing about ownership: a stale worker's ack succeeds too. Only an append decides.
package bus
