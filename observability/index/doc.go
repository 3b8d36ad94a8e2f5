// Package index projects the events of runs into a database, where they can be listed, filtered, searched and added up:
// SQLite in a file of the dispatcher's own, or a PostgreSQL that all dispatchers share.
//
// Each batch of events is one transaction that also moves the position, by compare-and-set, so every event counts exactly
// once, even if processes are killed or apply concurrently. Events of a run that arrive twice or out of order result in the same
// rows: a row records which event numbers it has seen.
//
// The index is derived data: if it is lost, or belongs to another stream, it is rebuilt from EVENTS. Events that retention has
// removed by then are lost.
package index
