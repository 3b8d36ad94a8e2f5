package openai

import (
	"errors"
	"net/http"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// exchange is one call, and what of its reply is neither text nor a tool call. It is used by one goroutine.
type exchange struct {
	*httpstream.Call

	model    string
	usage    messages.Usage
	finish   string // the raw finish reason, the last that was not empty
	refused  bool   // part of the text is a refusal
	thoughts thoughts
}

// send makes the request and turns everything but a 2xx into an error.
func (x *exchange) send(req *http.Request) error {
	err := x.Do(req)
	if no, ok := errors.AsType[*httpstream.RefusalError](err); ok {
		return x.refusal(no)
	}
	return err
}
