// Package bus is the kernel of Longshore on NATS JetStream: the connection, the streams and their settings, publishing, retry,
// buckets with signed revisions, reading streams. What the fleet stores there are the packages below it. No other package knows a
// JetStream setting.
//
// [Connect] opens a connection with the options that the guarantees below need. A dispatcher calls [Setup] once;
// every process calls [Open], which creates nothing.
//
// What it guarantees: a message is stored at least once; where twice would harm, the stream itself refuses the second. Every
// wait ends with its context, and every retry within [Config].Budget.
//
// What it does not do: it holds no state of its own that a restart could lose, and an ack of a message proves nothing about
// ownership: a stale worker's ack succeeds too. Only an append to a run's log decides.
package bus
