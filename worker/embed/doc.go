// Package embed runs agents inside a Go program: the same loop, log, planners, budgets and hooks as in a fleet, without
// a queue, a worker process, NATS or Redis. Make a [Service] with [New], open a [Session] for each task, and call
// [Session.Run].
//
// The log of a run is in memory: it is gone with its Session, and a crash of the program loses the run. A run that
// waits, for an answer or for a model that asks to be called later, waits in Run.
//
// A session hands out each event once, in order, with the same ids and numbers as a fleet. With Task.Seed set, and a
// Now of the caller's, a run whose model and tools always do the same gives the same events, byte for byte.
//
// The package links the loop and the contract, and no NATS, Redis or HTTP. What a provider or a tool links comes with
// it: worker/model/openai and worker/model/anthropic link net/http.
package embed
