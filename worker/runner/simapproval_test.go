package runner_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Two tools are destructive: they must not be called before an approval.
const (
	wreck = "wreck" // else as idem
	doom  = "doom"  // else as once
)

// dangerous makes some calls of the script destructive.
func (s script) dangerous(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 9))
	for _, calls := range s {
		for i := range calls {
			to := map[string]string{"idem": wreck, "once": doom}[calls[i].Name]
			if to != "" && r.IntN(2) == 0 {
				calls[i].Name = to
			}
		}
	}
	return s
}

// approves is the agent's word on approvals: in seeds whose parks expire, these do too, and in some people change arguments.
func (w *world) approves(d *messages.Definition) {
	d.Approve = &messages.Approve{}
	if w.expires() {
		d.Approve.Expires = messages.Duration(time.Minute)
	}
	if w.seed%3 == 1 {
		d.Approve.Edit = []string{wreck, doom}
	}
}

// editedArguments are those with which people approve a call where they may change them.
const editedArguments = `{"edited":true}`

// mustAsk reports whether a call needs an approval.
func (w *world) mustAsk(tool, call string) bool {
	if tool == wreck || tool == doom {
		return true
	}
	if w.plan == nil {
		return false
	}
	step := w.plan.plan.Find(call)
	return step != nil && w.plan.plan.NeedsApproval(step)
}

// refuses says which calls people deny: the same ones whatever happens.
func (w *world) refuses(call string) bool { return w.seed%2 == 0 && strings.HasSuffix(call, "1") }

// decide acts as a dispatcher that approves or denies; a stale decision is about other arguments.
func (w *world) decide(ctx context.Context, k *runlog.Controller, last record.Entry, stale bool) {
	p, _, err := k.Park(ctx, simRun, last)
	if err != nil || p == nil || p.Approval == nil {
		return
	}
	d := &record.Decided{
		ID: "d" + p.Call, Park: last.Head.ParkSeq, Step: p.Approval.Step, Call: p.Call, Hash: p.Approval.Hash, Denied: w.refuses(p.Call),
		By: "ann", Until: p.Until,
	}
	if p.Approval.Editable && !d.Denied {
		d.Asked, d.Arguments, d.Hash = d.Hash, editedArguments, messages.HashArguments(editedArguments)
	}
	if stale {
		d.Hash = messages.HashArguments(`{"other":true}`)
	}
	_, _ = k.Control(ctx, simRun, d)
}

// approved reports whether the log holds an approval of a call with these arguments that counts.
func (w *world) approved(call, arguments string) bool {
	asked := ""
	for e := range w.log.Read(context.Background(), simRun, 0, runlog.Tail) {
		for _, r := range e.Records {
			switch r := r.(type) {
			case *record.Parked:
				if r.Approval != nil && r.Call == call {
					asked = r.Approval.Hash
				}
			case *record.Decided:
				if r.Call == call && !r.Denied && r.About() == asked && (!r.Edits() || r.Hash == messages.HashArguments(r.Arguments)) {
					return r.Hash == messages.HashArguments(arguments)
				}
			}
		}
	}
	return false
}

// The seeds do ask, and what they ask for is approved, denied and let lapse.
func TestSimulationApproves(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		w, found := trial(t, seed, allRules, false)
		if found.total() != 0 {
			t.Fatal(found.first)
		}
		for e := range w.log.Read(context.Background(), simRun, 0, runlog.Tail) {
			for _, r := range e.Records {
				switch r := r.(type) {
				case *record.Decided:
					seen[r.Outcome()]++
					if r.Edits() && r.Hash != messages.HashArguments(`{"other":true}`) {
						seen["edited"]++
					}
				case *record.Expired:
					if r.Call != "" {
						seen[messages.Lapsed]++
					}
				}
			}
		}
	}
	for _, what := range []string{messages.Approved, messages.Denied, messages.Lapsed, "edited"} {
		if seen[what] == 0 {
			t.Errorf("nothing was %s: %v", what, seen)
		}
	}
}
