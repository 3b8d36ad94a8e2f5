package runner_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

var errGoneKey = fmt.Errorf("the key was destroyed: %w", record.ErrUnreadable)

// vault is a log of which entries up to a sequence do not open, and whose new ones are perhaps not sealed.
type vault struct {
	runlog.Memory
	through uint64
	err     error // of reads; nil: all opens
	noKey   bool  // to seal with
}

func (v *vault) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	if v.noKey && !record.SaysNothing(run, e.Records) {
		return 0, fmt.Errorf("seal: %w", errGoneKey)
	}
	return v.Memory.Append(ctx, run, last, e)
}

func (v *vault) Read(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range v.Memory.Read(ctx, run, after, through) {
			if err == nil && v.err != nil && e.Seq <= v.through {
				e.Records, err = nil, v.err
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// end is the last record of a log, and how many claims it has.
func (v *vault) end(t *testing.T) (end *record.Finished, claims int) {
	t.Helper()
	for e, err := range v.Memory.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Head.Has(record.KindClaimed) {
			claims++
		}
		end, _ = e.Records[len(e.Records)-1].(*record.Finished)
	}
	return end, claims
}

// A run that no process can read ends with the first ticket that finds it so, whether or not its tenant has a new key since, and a task
// that comes when there is no key goes to the dead letters as it came.
func TestRunThatCanNoLongerBeRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		begun, noKey bool
		claims       int
	}{
		"no key":               {begun: true, noKey: true, claims: 1},
		"a new key":            {begun: true, claims: 2},
		"a task without a run": {noKey: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, q := &vault{}, &rq{}
			fails := rmodel(func(context.Context, model.Request) (*model.Reply, error) { return nil, errors.New("away") })
			r, _ := rnew(v, q, &re{}, fails)
			if tc.begun {
				if out, _ := r.Run(t.Context(), rticket(1)); out != runner.Return {
					t.Fatalf("the first owner: %v", out)
				}
				last, _, _ := v.Last(t.Context(), rrun)
				v.through, v.err = last.Seq, errGoneKey
			}
			v.noKey = tc.noKey
			if out, err := r.Run(t.Context(), rticket(2)); out != runner.Done || err != nil {
				t.Fatalf("%v, %v", out, err)
			}
			end, claims := v.end(t)
			if end == nil || end.Result.Status != messages.StatusFailed || claims != tc.claims {
				t.Fatalf("the log ends with %+v after %d claims", end, claims)
			}
			if out, err := r.Run(t.Context(), rticket(3)); out != runner.Done || err != nil {
				t.Errorf("once more: %v, %v", out, err)
			}
			switch letter := string(rticket(1).Body); {
			case tc.begun && len(q.letters) > 0:
				t.Errorf("%d letters", len(q.letters))
			case !tc.begun && (len(q.letters) != 1 || string(q.letters[0].Task) != letter || !strings.Contains(q.letters[0].Error.Message, "longshore keys renew t")):
				t.Errorf("letters %+v", q.letters)
			}
		})
	}
}

// A key that the keyset of the tenant lacks, in the whole fleet, uses up the attempts of the run. Its end says why.
func TestKeyThatIsMissingForAll(t *testing.T) {
	t.Parallel()
	v, q := &vault{}, &rq{}
	fails := rmodel(func(context.Context, model.Request) (*model.Reply, error) { return nil, errors.New("away") })
	r, _ := rnew(v, q, &re{}, fails)
	if out, _ := r.Run(t.Context(), rticket(1)); out != runner.Return {
		t.Fatalf("the first owner: %v", out)
	}
	last, _, _ := v.Last(t.Context(), rrun)
	v.through, v.err = last.Seq, fmt.Errorf("the keyset has no key 7: %w: %w", record.ErrNoKey, record.ErrKeyMissing)
	out := runner.Return
	delivery := 2
	for ; out == runner.Return && delivery < 100; delivery++ {
		out, _ = r.Run(t.Context(), rticket(delivery))
	}
	end, _ := v.end(t)
	if out != runner.Done || end == nil || end.Result.Error.Code != messages.CodePoison || !strings.Contains(end.Result.Error.Message, "has no key 7") {
		t.Fatalf("after %d deliveries: %v, %+v", delivery, out, end)
	}
	if len(q.letters) != 1 || !strings.Contains(q.letters[0].Error.Message, "has no key 7") {
		t.Errorf("letters: %+v", q.letters)
	}
	// One that others may have does not.
	v, q = &vault{}, &rq{}
	r, _ = rnew(v, q, &re{}, fails)
	_, _ = r.Run(t.Context(), rticket(1))
	last, _, _ = v.Last(t.Context(), rrun)
	v.through, v.err = last.Seq, record.ErrNoKey
	for delivery := 2; delivery < 20; delivery++ {
		if out, _ := r.Run(t.Context(), rticket(delivery)); out != runner.Return {
			t.Fatalf("delivery %d: %v", delivery, out)
		}
	}
}
