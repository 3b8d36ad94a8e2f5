// Package httpstream is the plumbing of providers whose replies stream over HTTP: everything about a call that does not
// depend on the protocol spoken over it.
//
// [New] makes a [Client] for one endpoint. [Client.Call] begins a [Call], one request and its answer: [Call.Do] sends the
// request, [Call.Answer] looks at what came, [Events.Next] reads server-sent events, [Call.Failure] makes the error that
// the caller is shown, and [Call.Close] ends the call.
//
// Guarantees: every wait has a deadline, for the headers, for the first byte and for each piece after it. A line, an event
// and an answer are bounded in bytes. The request asks for permission just before its first byte leaves. Redirects are
// not followed, nothing is retried, no goroutine is started. An error is an *model.Error, or the cause of the caller's
// context, and shows no key.
//
// It does not know what an event means, when a reply is complete, or how a provider words its errors. That is the leaf's.
package httpstream
