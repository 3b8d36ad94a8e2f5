// Package memorytest reports whether short-term memory works on a server that speaks the protocol of Redis: call [Run]
// with a way to start one.
package memorytest
