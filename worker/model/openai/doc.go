// Package openai reaches models over the chat completions protocol of OpenAI, which most other providers, gateways
// and local servers speak in dialects.
//
// [New] makes a provider for one endpoint. Requests are written with the types of go-openai and sent by
// [httpstream], which also reads the events and bounds all sizes and waits. A reader of our own turns every dialect into
// one form: it coerces drifting types, tells tool calls apart, and turns every kind of error into an *model.Error. Each
// chunk is parsed once. A reply counts only when the provider has said that it is complete: a stream that ends early is
// an error of class Truncated, never a short reply.
//
// Requests differ by [Flavour], in the few places where servers disagree; replies are all read by the same rules.
//
// Reasoning comes as blocks of its own, whichever of its names it came under, and goes back, when a request says Echo,
// to the flavour that it came from and in the form in which it came. Marks that a server left in the text are read too:
// <think> at its beginning, and <tool_call> around a call of a tool that was offered.
//
// Memory is bounded by Config.MaxLine and MaxReply, and by fixed numbers of calls, list items and bytes of arguments.
// Nothing here is ever retried; see [model.Retry].
package openai
