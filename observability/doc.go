// Package observability shows what a process of the fleet does: logs, metrics, and HTTP for probes and scrapes.
//
// [NewLogger] makes the logger that the wiring hands out; no secret that it was told reaches the output.
// [NewMetrics] makes [Metrics], which are derived from events: [Metrics.Run] consumes a live tail. What no event
// shows is added by [Metrics.Gauge] and [Metrics.Counter]. [Handler] and [Serve] put them on a port.
//
// Metrics are for watching, not for counting money: events seen twice count twice, and those that pass while nobody
// consumes them are not counted. The log of a run has the truth.
package observability
