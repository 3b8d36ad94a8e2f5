// Package observability shows what a process of the fleet does: logs, metrics, and HTTP for probes and scrapes.
//
// [NewLogger] makes the logger that the wiring hands out; no secret that it was told reaches the output.
// [NewMetrics] makes the [Metrics] of a process. [NewEvents] adds what is counted from events, [NewView] what a
// dispatcher sees of the fleet, and [Metrics.Gauge] and [Metrics.Counter] anything else. [Handler] and [Serve] put them on
// a port.
//
// Metrics are for watching, not for counting money: counts end with their process, and an event that comes again counts
// again. The log of a run has the truth.
package observability
