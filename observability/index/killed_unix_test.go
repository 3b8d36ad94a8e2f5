//go:build unix

package index_test

import (
	"bufio"
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
	place := filepath.Join(t.TempDir(), "index.db")
	x := newHarbour(t).open(place)
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for range 6 {
		p := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperApplies$")
		p.Env = append(os.Environ(), applierPlace+"="+place)
		out, err := p.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 1 + random.IntN(8); n > 0 && lines.Scan(); n-- { // while it applies the next
		}
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait() // it was killed
		sumsAreRight(t, x)
	}
	if at, err := x.Position(t.Context()); err != nil || at == 0 {
		t.Errorf("nothing was applied: %d, %v", at, err)
	}
}

// TestHelperApplies is a process that applies events until it is killed, and prints a line for each transaction.
func TestHelperApplies(t *testing.T) {
	place := os.Getenv(applierPlace)
	if place == "" {
		return // it is no test
	}
	x, err := index.New(index.Config{Where: place})
	if err != nil {
		t.Fatal(err)
	}
	position, err := x.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := history{Rand: rand.New(rand.NewPCG(3, position))}
	for {
		var batch []index.Placed
		for _, e := range h.next(300) {
			batch = append(batch, index.NewPlaced(e, position+uint64(len(batch))+1))
		}
		to := position + uint64(len(batch))
		if err := x.Apply(t.Context(), position, to, batch...); err != nil {
			t.Fatal(err)
		}
		position = to
		fmt.Println(position)
	}
}
