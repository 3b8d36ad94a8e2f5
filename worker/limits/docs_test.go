package limits_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker/limits"
)

const (
	queueing  = "../../docs/queueing.md"
	docsBegin = "<!-- gates: UPDATE_DOCS=1 go test ./worker/limits -->\n"
	docsEnd   = "<!-- end of gates -->\n"
)

// Each reason is of a gate, reasons are in the order of the gates, and people read of both in docs/queueing.md.
func TestReasonsAndGatesAreOneList(t *testing.T) {
	var set limits.Set
	gates := set.InOrder()
	index := func(gate string) int {
		return slices.IndexFunc(gates, func(g limits.Named) bool { return g.Name == gate })
	}
	reasons := queue.ParkReasons()
	of := map[string][]queue.ParkReason{}
	for _, r := range reasons {
		if index(r.Gate) < 0 {
			t.Errorf("the reason %s is of the gate %q, which does not exist", r.Reason, r.Gate)
		}
		if got := queue.ParkReasonOf(r.Reason); got != r {
			t.Errorf("reason %s: got %+v", r.Reason, got)
		}
		of[r.Gate] = append(of[r.Gate], r)
	}
	if !slices.IsSortedFunc(reasons, func(a, b queue.ParkReason) int { return cmp.Compare(index(a.Gate), index(b.Gate)) }) {
		t.Error("the reasons are not in the order of the gates")
	}

	var rows strings.Builder
	rows.WriteString("| Gate | What it does | Reason | `why` |\n|---|---|---|---|\n")
	for _, g := range gates {
		reason, why := "", ""
		for _, r := range of[g.Name] {
			if reason != "" {
				reason, why = reason+"<br>", why+"<br>"
			}
			reason, why = reason+"`"+r.Reason+"`", why+r.Text
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", g.Name, g.Does, reason, why)
	}
	table := rows.String()
	page, err := os.ReadFile(queueing)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), docsBegin)
	was, after, ends := strings.Cut(rest, docsEnd)
	switch {
	case !begins || !ends:
		t.Fatalf("%s has no place for the table", queueing)
	case was == table:
	case os.Getenv("UPDATE_DOCS") != "":
		if err := os.WriteFile(queueing, []byte(before+docsBegin+table+docsEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from the gates; run UPDATE_DOCS=1 go test ./worker/limits", queueing)
	}
}
