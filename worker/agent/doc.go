// Package agent is the pure core: the records of a run fold into a [State], and a [Planner] answers a state with the
// next [Action]. It does no I/O and reads no clock, so the same log always gives the same state and the same action,
// on any worker, today and in a replay.
package agent
