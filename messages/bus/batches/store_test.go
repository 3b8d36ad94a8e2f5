package batches_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

func TestBatchIsStored(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	st, ref := batches.New(b), messages.BatchRef{Tenant: "acme", ID: "b1"}
	if _, _, err := st.Get(bustest.Context(t), ref); !errors.Is(err, batches.ErrNoBatch) {
		t.Errorf("before it is stored: got %v", err)
	}
	revision, err := st.Put(bustest.Context(t), &messages.Batch{BatchRef: ref}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(bustest.Context(t), &messages.Batch{BatchRef: ref}, 0); !errors.Is(err, batches.ErrBatchMoved) {
		t.Errorf("another with this id: got %v", err)
	}
	if head, at, err := st.Get(bustest.Context(t), ref); err != nil || at != revision || head.BatchRef != ref {
		t.Errorf("got %+v, %d, %v", head, at, err)
	}

	w, err := st.Write(ref)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, line := range [][2]string{{"t1", `{"n":1}`}, {"t2", `{"n":2}`}, {"t1", `{"n":1}`}} { // the last is stored already
		if err := w.Add(bustest.Context(t), line[0], []byte(line[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if n, err := st.CountLines(bustest.Context(t), ref, 2); n != 2 || err != nil {
		t.Errorf("got %d lines, %v", n, err)
	}
	var tasks []string
	for line := range bustest.Values(t, st.Lines(bustest.Context(t), ref, 0)) {
		tasks = append(tasks, line.Task)
		if err := st.RemoveLine(bustest.Context(t), line.Seq); err != nil {
			t.Error(err)
		}
	}
	if len(tasks) != 2 || tasks[0] != "t1" || tasks[1] != "t2" {
		t.Errorf("got %q", tasks)
	}
	if n, err := st.CountLines(bustest.Context(t), ref, 0); n != 0 || err != nil {
		t.Errorf("after they were removed: got %d lines, %v", n, err)
	}
}

func TestAnotherLineOfATask(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	w, err := batches.New(b).Write(messages.BatchRef{Tenant: "acme", ID: "b1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, body := range []string{`{"n":1}`, `{"n":2}`} {
		if err := w.Add(bustest.Context(t), "t1", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(bustest.Context(t)); !errors.Is(err, batches.ErrLineTaken) {
		t.Errorf("got %v", err)
	}
}

// What has changed is read from where one has come to: a head that was stored again is after all others.
func TestChangedBatches(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := batches.New(b)
	put := func(id string, status messages.BatchStatus, after uint64) uint64 {
		t.Helper()
		revision, err := st.Put(bustest.Context(t), &messages.Batch{BatchRef: messages.BatchRef{Tenant: "acme", ID: id}, Status: status}, after)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	changed := func(after uint64) (got []string, last uint64) {
		t.Helper()
		last = after
		for c := range bustest.Values(t, st.Changed(bustest.Context(t), after)) {
			last = c.Seq
			if c.Head == nil {
				got = append(got, "unreadable")
				continue
			}
			got = append(got, c.Head.ID+" "+string(c.Head.Status))
		}
		return got, last
	}
	first := put("a", messages.BatchInProgress, 0)
	put("b", messages.BatchInProgress, 0)
	if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), "batches.acme.c.head", []byte("junk")); err != nil {
		t.Fatal(err)
	}
	got, last := changed(0)
	if diff := cmp.Diff([]string{"a in_progress", "b in_progress", "unreadable"}, got); diff != "" {
		t.Error(diff)
	}
	if got, _ := changed(last); len(got) != 0 {
		t.Errorf("nothing has changed: %q", got)
	}
	put("a", messages.BatchCompleted, first)
	if got, _ := changed(last); len(got) != 1 || got[0] != "a completed" {
		t.Errorf("one has changed: %q", got)
	}
}

// Of a page the server counts what follows, which takes time with the lines of a batch. What moves a batch asks for few messages, and for none of
// them so.
func TestMovingABatchAsksForNoPages(t *testing.T) {
	t.Parallel()
	b, nc := bustest.Open(t, bustest.Start(t), bus.Config{Direct: true})
	asked, err := nc.SubscribeSync("$JS.API.DIRECT.GET.>")
	if err != nil {
		t.Fatal(err)
	}
	st, ref := batches.New(b), messages.BatchRef{Tenant: "acme", ID: "b1"}
	if _, err := st.Put(bustest.Context(t), &messages.Batch{BatchRef: ref}, 0); err != nil {
		t.Fatal(err)
	}
	const lines = 100
	w, err := st.Write(ref)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range lines {
		task := fmt.Sprintf("t%d", i)
		if err := w.Add(bustest.Context(t), task, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if err := st.PutOutcome(bustest.Context(t), ref, &messages.BatchOutcome{Task: task, Status: messages.BatchCompleted}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	read := 0
	for range bustest.Values(t, st.Lines(bustest.Context(t), ref, 0)) {
		read++
	}
	for range bustest.Values(t, st.Outcomes(bustest.Context(t), ref, 0)) {
		read++
	}
	for range bustest.Values(t, st.Changed(bustest.Context(t), 0)) {
		read++
	}
	if read != 2*lines+1 {
		t.Errorf("read %d messages, want %d", read, 2*lines+1)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	n, _, err := asked.Pending()
	if err != nil || n < read {
		t.Fatalf("heard %d requests, %v, want one for each message", n, err)
	}
	for range n {
		m, err := asked.NextMsg(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(m.Data), `"batch"`) {
			t.Errorf("asked for a page: %s", m.Data)
		}
	}
}
