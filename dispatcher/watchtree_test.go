package dispatcher_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/longshore-run/longshore/dispatcher"
)

// A stream of a tree that is cut begins again, perhaps in another order: each event comes once, and the last ends it.
func TestWatchTreeOverACutStream(t *testing.T) {
	t.Parallel()
	events := [][2]any{{"root", 1}, {"root", 2}, {"child", 1}, {"root", 3}, {"child", 2}, {"root", 4}}
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("children") != "true" || r.Header.Get("Last-Event-ID") != "" || r.URL.Query().Get("after") != "" {
			t.Errorf("it asks for %s", r.URL)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		n := int(asked.Add(1)) * 2
		for i := range min(n, len(events)) {
			e := events[i]
			if n > len(events) && i == 2 { // the child comes before
				e = events[1]
			} else if n > len(events) && i == 1 {
				e = events[2]
			}
			data, err := json.Marshal(map[string]any{
				"specversion": "1.0", "id": fmt.Sprint(e[0], ".", e[1]), "source": "/tenants/default", "type": "longshore.step_start.v1", "subject": e[0],
				"time": "2026-01-02T12:00:00Z", "sequence": fmt.Sprint(e[1]), "data": map[string]any{},
			})
			if err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprintf(w, "event: step_start\ndata: %s\n\n", data)
		}
		if n > len(events) {
			_, _ = fmt.Fprint(w, "id: end\nevent: tree_finished\ndata: {\"run\":\"root\"}\n\n")
		}
	}))
	t.Cleanup(server.Close)
	client, err := dispatcher.NewHTTP(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range client.Runs().WatchTree(t.Context(), dispatcher.Run("root")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Subject+" "+e.Sequence)
	}
	if want := []string{"root 1", "root 2", "child 1", "root 3", "child 2", "root 4"}; !slices.Equal(got, want) || asked.Load() != 4 {
		t.Errorf("%v in %d requests, want %v", got, asked.Load(), want)
	}
}
