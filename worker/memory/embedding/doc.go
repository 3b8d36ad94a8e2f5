// Package embedding turns texts into vectors: [OpenAI] by an endpoint that speaks OpenAI's protocol, [Scripted] in the process, the same
// vector for the same text whenever it is asked.
//
// Both are a longterm.Embedder. A call of OpenAI ends in bounded time: each request has the deadlines of httpstream, and the retries
// share one budget. Its errors are *model.Error and show no key.
package embedding
