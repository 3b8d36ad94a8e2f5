package index_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/erasure"
)

// A search finds the same runs whether their texts are in a block or not, also after they changed, were erased or fell out of a block,
// and after a rebuild.
func TestSearchInBlocks(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		const runs = 8192 + 2*2048 + 60 // one block, and some that are in none
		h := newHarbour(t)
		x := h.open(place())
		h.keep(x)
		input := func(i int) string {
			text := fmt.Sprintf("Berth %d at the quay", i)
			if i%1000 == 0 {
				text += " of Ålesund"
			}
			return text
		}
		for i := range runs {
			e := numbered(acme(fmt.Sprintf("run-%05d", i)), noon, messages.EventRunQueued, messages.RunQueued{Agent: fmt.Sprintf("a%d", i%2), Input: input(i)})[0]
			body, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := h.js.PublishAsync(h.at(e.Ref(), e.Name()), body, jetstream.WithStallWait(patience))
			if err != nil {
				t.Fatal(err)
			}
			if h.bus.Partitions(bus.StreamEvents).Divided() { // then their order is that of the times at which they were stored
				select {
				case <-stored.Ok():
				case err := <-stored.Err():
					t.Fatal(err)
				}
			}
		}
		<-h.js.PublishAsyncComplete()
		h.caughtUp(x)
		blocks := func(want int) {
			t.Helper()
			h.until(fmt.Sprintf("there are %d blocks", want), func() bool {
				n, _, err := x.Blocks(t.Context())
				return err == nil && n == want
			})
		}
		blocks(1)
		thousands := []string{"run-12000", "run-11000", "run-10000", "run-09000", "run-08000", "run-07000", "run-06000", "run-05000", "run-04000", "run-03000", "run-02000", "run-01000", "run-00000"}
		search := func(when string, thousands []string) {
			t.Helper()
			for _, tc := range []struct {
				req  control.RunsRequest
				want []string
			}{
				{control.RunsRequest{Search: "berth 4711 at"}, []string{"run-04711"}},
				{control.RunsRequest{Search: "RUN-12345"}, []string{"run-12345"}}, // it is in no block
				{control.RunsRequest{Search: "quay of Ålesund"}, thousands},
				{control.RunsRequest{Search: "Å"}, thousands}, // too short for a piece
				{control.RunsRequest{Search: "ålesund", Agent: "a1"}, nil},
				{control.RunsRequest{Search: "quay at"}, nil}, // of pieces that every run has
				{control.RunsRequest{Search: "ålesund", After: "run-04000"}, thousands[len(thousands)-4:]},
				{control.RunsRequest{Search: "ålesund", After: "run-04500", Limit: 2}, thousands[len(thousands)-5 : len(thousands)-3]},
			} {
				if diff := cmp.Diff(tc.want, ids(t, x, tc.req), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: %q after %q: %s", when, tc.req.Search, tc.req.After, diff)
				}
			}
		}
		search("with a block", thousands)

		var paged []string
		for req := (control.RunsRequest{Tenant: "acme", Search: "at the quay", Count: true, Limit: 700}); ; {
			page, err := x.Runs(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if left := runs - len(paged); page.Found != min(left, control.MaxRunsFound) || page.More != (left > control.MaxRunsFound) {
				t.Errorf("after %d: %d found, more: %t", len(paged), page.Found, page.More)
			}
			for _, r := range page.Runs {
				paged = append(paged, r.ID)
			}
			if req.After = page.Next; page.Next == "" {
				break
			}
		}
		for i, id := range paged {
			if want := fmt.Sprintf("run-%05d", runs-1-i); id != want {
				t.Fatalf("run %d of the pages is %s", i, id)
			}
		}
		if len(paged) != runs {
			t.Errorf("the pages have %d runs", len(paged))
		}

		failed := numbered(acme("run-00042"), noon, messages.EventRunQueued, messages.RunQueued{}, messages.EventRunFinished,
			messages.RunFinished{Result: messages.AgentResult{ID: "run-00042", Status: messages.StatusFailed, Error: &messages.RunError{Code: messages.CodeToolFailed, Message: "the crane is stuck"}}})
		h.publish(failed[1])
		h.caughtUp(x)
		if diff := cmp.Diff([]string{"run-00042"}, ids(t, x, control.RunsRequest{Search: "crane is stuck"})); diff != "" {
			t.Errorf("what changed: %s", diff)
		}
		if diff := cmp.Diff([]string{"run-00042"}, ids(t, x, control.RunsRequest{Search: "berth 42 at"})); diff != "" {
			t.Errorf("what changed is there twice, or not: %s", diff)
		}

		if err := events.New(h.bus).AnnounceTo(t.Context(), "acme", erasure.EventErased, erasure.Erased{Of: "subject", Runs: []string{"run-05000"}}); err != nil {
			t.Fatal(err)
		}
		h.caughtUp(x)
		blocks(1) // it fell apart, and others are in one again
		left := strings.Fields(strings.ReplaceAll(strings.Join(thousands, " "), "run-05000 ", ""))
		search("after an erasure", left)

		if err := x.Exec(t.Context(), "UPDATE longshore_blocks SET made_at = 0"); err != nil {
			t.Fatal(err)
		}
		if err := x.RetainNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, loose, err := x.Blocks(t.Context()); err != nil || n != 0 || loose != runs-2 { // the run that ended long ago is gone too
			t.Errorf("of an old block there are %d, and %d runs in none, %v", n, loose, err)
		}
		search("without a block", left)

		if err := x.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.caughtUp(x)
		blocks(1)
		search("after a rebuild", left)
	})
}

// A search looks at each run once, the newest first, however blocks overlap.
func TestCandidatesAreInOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	h := newHarbour(t)
	for range 20 {
		x := h.open(filepath.Join(t.TempDir(), "index.db"))
		if err := x.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		some := func(n int) (out []int64) {
			from, to := random.Int64N(2000), 50+random.Int64N(2000)
			for range n {
				out = append(out, 1+from+random.Int64N(to))
			}
			slices.Sort(out)
			return slices.Compact(out)
		}
		loose, before := some(random.IntN(300)), 1+random.Int64N(5000)
		want := slices.Clone(loose)
		var blocks [][]int64
		for range random.IntN(8) {
			b := some(1 + random.IntN(700))
			blocks, want = append(blocks, b), append(want, b...)
		}
		want = slices.DeleteFunc(want, func(n int64) bool { return n >= before })
		slices.Sort(want)
		want = slices.Compact(want)
		slices.Reverse(want)
		got, err := x.Candidates(t.Context(), loose, blocks, before)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("%v: %s", err, diff)
		}
	}
}
