//go:build unix

package index_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/longshore-run/longshore/observability/index"
)

// applierPlace is the environment variable with the file to which TestHelperApplies applies events.
const applierPlace = "LONGSHORE_TEST_INDEX"

// A process that is killed, at whatever point, leaves sums that are those of the rows.
func TestSumsOfAKilledProcess(t *testing.T) {
	t.Parallel()
	x := killed(t, "^TestHelperApplies$")
	if at, err := x.Position(t.Context()); err != nil || at == 0 {
		t.Errorf("nothing was applied: %d, %v", at, err)
	}
}

// So does one that gives up all rows and removes them, again and again.
func TestRebuildOfAKilledProcess(t *testing.T) {
	t.Parallel()
	x := killed(t, "^TestHelperRebuilds$")
	if err := x.GiveUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := x.Clear(t.Context(), func(*sql.DB) {}); err != nil {
		t.Fatal(err)
	}
	if runs, steps := dump(t, x); len(runs) != 0 || len(steps) != 0 {
		t.Errorf("%d runs and the steps of %d are left", len(runs), len(steps))
	}
	sumsAreRight(t, x)
}

// killed has a test run in a process, kills it at some point, and looks at the sums that it left, several times.
func killed(t *testing.T, helper string) *index.Index {
	t.Helper()
	place := filepath.Join(t.TempDir(), "index.db")
	x := newHarbour(t).open(place)
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for range 6 {
		p := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+helper)
		p.Env = append(os.Environ(), applierPlace+"="+place)
		out, err := p.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 1 + random.IntN(8); n > 0 && lines.Scan(); n-- { // while it does what is next
		}
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait() // it was killed
		sumsAreRight(t, x)
	}
	return x
}

// applier opens the index of a process that is killed, and returns what applies the events of some runs; nil: it is no test.
func applier(t *testing.T) (*index.Index, func() uint64) {
	t.Helper()
	place := os.Getenv(applierPlace)
	if place == "" {
		return nil, nil
	}
	x, err := index.New(index.Config{Where: place})
	if err != nil {
		t.Fatal(err)
	}
	seed, err := x.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := history{Rand: rand.New(rand.NewPCG(3, seed))}
	return x, func() uint64 {
		position, err := x.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var batch []index.Placed
		for _, e := range h.next(300) {
			batch = append(batch, index.NewPlaced(e, position+uint64(len(batch))+1))
		}
		to := position + uint64(len(batch))
		if err := x.Apply(t.Context(), position, to, batch...); err != nil {
			t.Fatal(err)
		}
		return to
	}
}

// TestHelperApplies is a process that applies events until it is killed, and prints a line for each transaction.
func TestHelperApplies(t *testing.T) {
	for x, apply := applier(t); x != nil; {
		fmt.Println(apply())
	}
}

// TestHelperRebuilds is a process that applies events and removes all rows until it is killed, and prints a line for each of these.
func TestHelperRebuilds(t *testing.T) {
	for x, apply := applier(t); x != nil; {
		if err := x.Clear(t.Context(), func(*sql.DB) {}); err != nil { // what the one before began
			t.Fatal(err)
		}
		for range 3 {
			fmt.Println(apply())
		}
		if err := x.GiveUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		fmt.Println("given up")
	}
}
