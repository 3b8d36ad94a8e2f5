package messages_test

import (
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// forked is a run that was forked from another at its second step, before and after which it has calls.
func forked(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	read := call("c1", "read_file", `{"path":"a.go"}`)
	first := startedWith(func(*messages.Definition) {})
	first.Agent.Model = "other-model"
	first.ForkedFrom = &messages.Origin{Run: "run-0", Seq: 9, Step: 2}
	for _, r := range []record.Record{
		stepStarted(1), replied(1, "", read), &record.ToolStarted{Step: 1, Call: read}, returned(1, read, "package a", ""),
		stepEnded(1, messages.StepCompleted),
	} {
		kept, ok := record.Forked(r)
		if !ok {
			t.Fatalf("%s stays behind", r.Kind())
		}
		first.Prefix = append(first.Prefix, kept)
	}
	s.add(first)
	s.add(claimed("k1", "w1", 7))
	s.add(stepStarted(2))
	s.add(replied(2, "It is a package."), stepEnded(2, messages.StepCompleted), finished(2, "It is a package.", nil))
	return s.entries
}

// What says who owned a run, or what was asked of it, stays behind; what a reply cost was paid by the other run.
func TestForked(t *testing.T) {
	t.Parallel()
	stay := map[record.Kind]bool{
		record.KindStarted: true, record.KindClaimed: true, record.KindReleased: true, record.KindLost: true,
		record.KindParked: true, record.KindAnswered: true, record.KindExpired: true, record.KindCancelRequested: true,
		record.KindBudgetWarned: true, record.KindFinished: true, record.KindDecided: true, record.KindSessionGranted: true,
		record.KindHookFailed: true, record.KindPolicyApplied: true, record.KindLined: true, record.KindUnverified: true,
		record.KindDelegated: true, record.KindChildEnded: true, record.KindWithdrawn: true,
	}
	for _, r := range fullRecords() {
		kept, ok := record.Forked(r)
		f, failed := r.(*record.ModelFailed)
		again := failed && (f.Fallback == record.FallbackPark || f.Fallback == record.FallbackRetry)
		m, wrote := r.(*record.MemoryWritten)
		own := wrote && m.Learned // an example of the run itself
		if ok == (stay[r.Kind()] || again || own) {
			t.Errorf("%s: kept %t", r.Kind(), ok)
		}
		if m, is := kept.(*record.ModelReplied); is && (!m.Cached || m.Usage != (messages.Usage{}) || m.Cost == nil || *m.Cost != 0) {
			t.Errorf("%+v", m)
		}
		if m, is := kept.(*record.Summarised); is && (!m.Cached || m.Usage != (messages.Usage{}) || m.Cost == nil || *m.Cost != 0) {
			t.Errorf("%+v", m)
		}
	}
}

func TestForkRequestRefuses(t *testing.T) {
	t.Parallel()
	noRun := control.ForkRequest{At: 1, NewID: messages.NoRun}
	if noRun.Check() == nil {
		t.Error("a fork may be no run")
	}
	for field, r := range map[string]control.ForkRequest{
		"at":       {},
		"agent":    {At: 1, Agent: "a.b"},
		"newId":    {At: 1, NewID: "*"},
		"revision": {At: 1, Revision: 3},
		"model":    {At: 1, Model: "a\x00b"},
	} {
		if fe, ok := r.Check().(*messages.FieldError); !ok || fe.Field != field {
			t.Errorf("%+v: %v", r, r.Check())
		}
	}
}

// An entry outside its log is the same entry.
func TestLogEntries(t *testing.T) {
	t.Parallel()
	for name, entries := range stories(t) {
		for _, e := range entries {
			l, err := control.NewEntryCopy(e)
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.Entry()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			noDiff(t, name, e, got)
		}
	}
	for _, l := range []control.EntryCopy{{}, {Seq: 1, Head: []byte("7")}, {Seq: 1, Head: []byte("{}"), Records: []byte("[]")}} {
		if _, err := l.Entry(); err == nil {
			t.Errorf("%+v is an entry", l)
		}
	}
}
