// Package index projects the events of runs into a database, where they can be listed, filtered, searched and added up:
// SQLite in a file of the dispatcher's own, or a PostgreSQL that all dispatchers share.
//
// Each batch of events is one transaction that also moves the position, by compare-and-set, so every event counts exactly
// once, whoever is killed where and however many apply at once. Events of a run that come twice, or out of order, have the
// same rows as those that come once and in order: a row knows which numbers it has seen.
//
// The index is only derived: lost, or of another stream, it is made again from EVENTS. What retention has removed from
// EVENTS by then is lost with it.
package index
