package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/worker/model/openai"
)

// A finish reason completes a reply, though usage and [DONE] may follow it.
func TestEndsAfterTheFinishReason(t *testing.T) {
	for name, last := range map[string]func(r *http.Request){
		"silence": func(r *http.Request) { <-r.Context().Done() },
		"a cut":   func(*http.Request) { panic(http.ErrAbortHandler) }, // the server's way to cut a connection
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // a server notices a disconnect only after the request
				write(w, events(text("a"), finish("stop")), 0)
				last(r)
			}, func(c *openai.Config) { c.IdleTimeout = time.Second })
			check(t, call(t.Context(), p, hello()), want{text: "a"})
		})
	}
}

func TestManyCallsShareConnections(t *testing.T) {
	const callers, rounds = 200, 5
	var mu sync.Mutex
	remotes := map[string]bool{}
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		remotes[r.RemoteAddr] = true
		mu.Unlock()
		write(w, data(text("a"), finish("stop"), usage), 0)
	})
	var wg sync.WaitGroup
	errs := make(chan error, callers*rounds)
	for range callers {
		wg.Go(func() {
			for range rounds {
				if o := call(t.Context(), p, hello()); o.Err != nil || o.Text != "a" {
					errs <- fmt.Errorf("%q: %w", o.Text, o.Err)
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
	if len(remotes) > 2*callers { // a dial may lose the race against a connection that comes free
		t.Errorf("%d connections for %d callers", len(remotes), callers)
	}
}
