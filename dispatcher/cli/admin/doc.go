// Package admin has the commands that operate a fleet: keys, quotas, pauses, lanes, workers, dead letters and the index.
package admin
