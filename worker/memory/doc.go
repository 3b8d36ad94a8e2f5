// Package memory keeps what workers remember of runs outside the log. [ShortTerm] is the short-term memory in Redis:
// a cache of the latest state of each run. [Connect], [New], then [ShortTerm.Run] in a goroutine of its own. Notes that a
// run keeps for itself are in its log: see package messages/scratchpad.
//
// Redis is never the truth. A state that is missing, old or lost costs the time to fold the log and nothing else, so
// no operation waits long, and a dead Redis is left alone until it answers again. Values are sealed for
// their tenant where Config has a Sealer, and bound to where they stand; otherwise they are in the clear.
package memory
