package anthropic

import (
	"errors"
	"net/http"

	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// exchange is one call. It is used by one goroutine.
type exchange struct {
	*httpstream.Call

	provider *Provider
	names    names
	err      error // of Do: the client loses it when the watchdog ended the request
}

// Do implements the client's HTTPClient. Everything but a 2xx is an *model.Error, as is a request without an answer.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	resp, err := x.Call.Do(req)
	if no, ok := errors.AsType[*httpstream.RefusalError](err); ok {
		err = x.refusal(no)
	}
	x.err = err
	return resp, err
}
