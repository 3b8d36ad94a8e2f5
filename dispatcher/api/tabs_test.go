package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/worker/model/scripted"
)

var errCut = errors.New("the events end too early")

// A hundred browsers that watch a run through hundreds of steps cost less than 100 MB, their own side of the connections included, and
// when they are gone nothing of them is left.
func TestAHundredTabs(t *testing.T) {
	const (
		tabs, steps = 100, 150
		most        = 100_000_000
		left        = 20_000_000 // of their memory, and
		others      = 20         // goroutines that something else may have started
		enough      = 3 * time.Minute
	)
	var play strings.Builder
	play.WriteString("scenes:\n  - match: march\n    turns:\n")
	for i := range steps {
		fmt.Fprintf(&play, "      - {text: \"step number %d\", chunk: 4, calls: [{name: list_files, arguments: {}}]}\n", i+1)
	}
	play.WriteString("      - {delay: 1h, text: never}\n")
	scenes, err := scripted.Parse([]byte(play.String()))
	if err != nil {
		t.Fatal(err)
	}
	h := openWith(t, scripted.New(scenes))
	h.do("PUT", "/v1/agents/marcher", `{"name":"marcher","tools":["list_files"],"maxSteps":500,"repeatLimit":0}`, http.StatusOK, nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, closeAll := context.WithTimeout(t.Context(), enough)
	defer closeAll()
	// watch reads the events of the run, those after the last one if it had some, and returns the id of the last. It calls seen when the last step has begun.
	watch := func(last string, seen func()) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/v1/tasks/m/events?deltas=true", http.NoBody)
		if err != nil {
			return last, err
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := client.Do(req)
		if err != nil {
			return last, err
		}
		defer func() { _ = resp.Body.Close() }()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id:"); ok {
				last = strings.TrimSpace(id)
			}
			if strings.Contains(lines.Text(), fmt.Sprintf(`"stepId":"step-%d"`, steps+1)) {
				seen()
				_, err := io.Copy(io.Discard, resp.Body) // until it is closed
				return last, err
			}
		}
		return last, errCut
	}
	used := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	var all, seen sync.WaitGroup
	http.DefaultClient.CloseIdleConnections()
	before, running := used(), runtime.NumGoroutine()
	h.do("POST", "/v1/tasks", `{"id":"m","agent":"marcher","input":"march"}`, http.StatusAccepted, nil)
	for range tabs {
		seen.Add(1)
		all.Go(func() {
			watched := sync.OnceFunc(seen.Done)
			defer watched()
			last, err := watch("", watched)
			for errors.Is(err, errCut) && ctx.Err() == nil { // one that reads too slowly is cut off, and comes back, as a browser does
				last, err = watch(last, watched)
			}
			if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	seen.Wait()
	cost := used() - before
	t.Logf("%d tabs cost %.1f MB", tabs, float64(cost)/1e6)
	if cost > most {
		t.Errorf("%d tabs cost %d bytes, more than %d", tabs, cost, most)
	}
	closeAll()
	all.Wait()
	gone := func() bool { return runtime.NumGoroutine() <= running+others && used() <= before+left }
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !gone(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("of %d tabs that are gone %d goroutines are left, and %d bytes", tabs, runtime.NumGoroutine()-running, used()-before)
		}
	}
}
