package search

import (
	"net/http"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools/outbound"
)

// Answered is an answer as the model gets it.
func Answered(name string, ok bool, body []byte) string {
	s := searcher{provider: providers()[name]}
	resp := &outbound.Response{Status: http.StatusOK, Body: body}
	if !ok {
		resp.Status = http.StatusTeapot
	}
	m := messages.Message{Content: s.answer(resp).Content}
	return m.Text()
}
