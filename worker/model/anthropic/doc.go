// Package anthropic reaches models over the Messages API of Anthropic, and whatever else speaks it.
//
// [New] makes a provider for one endpoint. Requests go out through httpstream, which reads the events of the answer and
// bounds all sizes and waits. A reply counts only after message_stop: a stream that ends before is an error of class
// Truncated, never a short reply.
//
// Usage.Input counts all of the prompt, what was read from and written to the cache included, as it does for other
// providers; CacheRead and CacheWrite tell the parts.
//
// Reasoning is handed on as blocks of family "anthropic", and sent back when the request says Echo. Nothing here is
// ever retried; see [model.Retry].
package anthropic
