//go:build unix

package index_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

// A rebuild of many rows removes some in each transaction: others write in between, and where it is stopped the next process continues.
func TestRebuildOfManyRows(t *testing.T) {
	t.Parallel()
	const runs = 3000
	h := newHarbour(t)
	place := filepath.Join(t.TempDir(), "index.db")
	x := h.open(place)
	stop := h.keep(x)
	for i := range runs {
		e := numbered(acme(fmt.Sprintf("run-%05d", i)), noon, messages.EventRunQueued, messages.RunQueued{Agent: "a", Input: "hello"})[0]
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.js.PublishAsync(e.Ref().EventSubject(e.Name()), body, jetstream.WithStallWait(patience)); err != nil {
			t.Fatal(err)
		}
	}
	<-h.js.PublishAsyncComplete()
	h.caughtUp(x)
	stop()
	if err := x.Exec(t.Context(), "UPDATE longshore_runs SET input = 'of before'"); err != nil {
		t.Fatal(err)
	}
	if err := x.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	pieces, left := 0, 0
	err := x.Clear(ctx, func(on *sql.DB) {
		pieces++
		other := h.open(place)
		if err := other.Exec(t.Context(), "UPDATE longshore_index SET as_of = as_of"); err != nil {
			t.Errorf("another cannot write in between: %v", err)
		}
		if err := on.QueryRowContext(t.Context(), "SELECT count(*) FROM longshore_runs").Scan(&left); err != nil {
			t.Error(err)
		}
		if pieces == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || pieces != 3 || left == 0 || left >= runs {
		t.Fatalf("after %d transactions there are %d runs: %v", pieces, left, err)
	}
	sumsAreRight(t, x)
	h.keep(x)
	h.caughtUp(x)
	sumsAreRight(t, x)
	all, _ := dump(t, x)
	if len(all) != runs {
		t.Errorf("%d runs after the rebuild", len(all))
	}
	for _, r := range all {
		if r.Input != "hello" {
			t.Fatalf("a row of before: %+v", r)
		}
	}
}

// The process that applies stays in charge during a rebuild, and applies anew at once.
func TestRebuildStaysInCharge(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		x := h.open(place())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- x.Keep(ctx) }()
		h.publish(made(acme("run"), noon, nil)...)
		h.caughtUp(x)
		if err := x.Exec(t.Context(), "UPDATE longshore_runs SET input = 'of before'"); err != nil {
			t.Fatal(err)
		}
		if err := x.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.until("the rows are made again", func() bool {
			select {
			case err := <-ended:
				t.Fatalf("it is no longer in charge: %v", err)
			default:
			}
			all, _ := dump(t, x)
			return all["acme/run"].Input == "hello"
		})
		sumsAreRight(t, x)
		cancel()
		<-ended
	})
}
