// Package fleet puts the processes together: what a dispatcher and a worker are made of, and the whole fleet in one
// process for development and tests. Nothing here decides anything; it is wiring.
//
// [Dispatcher] and [Worker] block until their context ends and they have drained. [StartDev] starts everything
// embedded and returns once it accepts work.
package fleet
