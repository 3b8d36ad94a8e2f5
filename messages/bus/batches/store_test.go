package batches_test

import (
	"errors"
	"testing"

	"github.com/longshore-run/longshore/messages"
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
