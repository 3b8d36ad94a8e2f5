//go:build unix

package index_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/observability/index"
)

// A rebuild of many rows removes some in each transaction: others write in between, and where it is stopped the next process continues. Once few are
// left it empties the tables.
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
		if _, err := h.js.PublishAsync(h.at(e.Ref(), e.Name()), body, jetstream.WithStallWait(patience)); err != nil {
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
	x.ClearAtOnce(runs / 4)
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
		if pieces == 4 { // the first and the third found that there are too many to empty the tables
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || pieces != 4 || left == 0 || left >= runs {
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

// If the tables cannot be emptied at once, nothing of that remains, and some rows are removed at a time.
func TestRebuildThatCannotEmpty(t *testing.T) {
	t.Parallel()
	const runs = 1200
	x := newHarbour(t).open(filepath.Join(t.TempDir(), "index.db"))
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	var batch []index.Placed
	for i := range runs {
		for _, e := range made(acme(fmt.Sprintf("run-%05d", i)), noon, nil) {
			batch = append(batch, index.NewPlaced(e, uint64(len(batch))+1))
		}
	}
	if err := x.Apply(t.Context(), 0, uint64(len(batch)), batch...); err != nil {
		t.Fatal(err)
	}
	if err := x.GiveUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	const slow = "CREATE TRIGGER slow BEFORE UPDATE ON longshore_kept WHEN OLD.runs - NEW.runs > 500 BEGIN SELECT RAISE(ABORT, 'too slow'); END"
	if err := x.Exec(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	var left []int
	err := x.Clear(t.Context(), func(on *sql.DB) {
		n := 0
		if err := on.QueryRowContext(t.Context(), "SELECT count(*) FROM longshore_runs").Scan(&n); err != nil {
			t.Error(err)
		}
		left = append(left, n)
		sumsAreRight(t, x)
	})
	if want := []int{1200, 1200, 700, 200, 0}; err != nil || !slices.Equal(left, want) {
		t.Errorf("runs before each transaction: %v, want %v: %v", left, want, err)
	}
	if all, steps := dump(t, x); len(all) != 0 || len(steps) != 0 {
		t.Errorf("%d runs and the steps of %d are left", len(all), len(steps))
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
