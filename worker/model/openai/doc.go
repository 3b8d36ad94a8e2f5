// Package openai reaches models over the chat completions protocol of OpenAI, which most other providers, gateways
// and local servers speak in dialects.
//
// [New] makes a provider for one endpoint. Requests and replies go through the go-openai client; beneath it lies an
// HTTP layer of our own that turns every dialect into the one form that the client reads safely: it re-frames the
// event stream, coerces drifting types, tells tool calls apart, bounds all sizes and waits, and turns every kind of
// error into an *model.Error. A reply counts only when the provider has said that it is complete: a stream that ends
// early is an error of class Truncated, never a short reply.
//
// Reasoning is not handed on. Nothing here is ever retried; see [model.Retry].
package openai
