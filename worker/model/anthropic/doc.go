// Package anthropic reaches models over the Messages API of Anthropic, and whatever else speaks it.
//
// [New] makes a provider for one endpoint. Requests are built of the types of anthropic-sdk-go by its client, and go out
// through httpstream, which reads the events of the answer and bounds all sizes and waits. The SDK's own reader takes a
// stream that was cut for a whole one, reads lines of any kind of JSON without complaint, and knows no bound on time. A reply counts only after message_stop: a
// stream that ends before is an error of class Truncated, never a short reply.
//
// Usage.Input counts all of the prompt, what was read from and written to the cache included, as it does for other
// providers; CacheRead and CacheWrite tell the parts.
//
// Reasoning is handed on as blocks of family "anthropic", and sent back when the request says Echo. Nothing here is
// ever retried; see [model.Retry].
package anthropic
