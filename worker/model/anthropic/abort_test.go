package anthropic_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
)

var begun = events(start, open(0, "text", `"text":""`), text(0, "a"))

// The reason to stop is not the end: message_stop is.
func TestIdleAfterTheReason(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices a disconnect only after the request
		write(w, events(start, open(0, "text", `"text":"a"`), because("end_turn")), 0)
		<-r.Context().Done()
	}, func(c *anthropic.Config) { c.IdleTimeout = time.Second })
	check(t, call(t.Context(), p, hello()), want{text: "a", class: model.Timeout, detail: "nothing came for 1s"})
}

func TestArgumentsWithoutEndAreBounded(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for write(w, events(start, tool(0, "x", "f")), 0); r.Context().Err() == nil; {
			write(w, events(input(0, strings.Repeat("x", 10_000))), 0)
		}
	}, func(c *anthropic.Config) { c.MaxReply = 1 << 20 })
	check(t, call(t.Context(), p, hello()), want{class: model.ReplyTooLarge, detail: "is larger than"})
}
