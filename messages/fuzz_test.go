package messages_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

func FuzzDecodeTask(f *testing.F) {
	seed(f, "testdata/golden/task*.json")
	f.Add(typicalTask())
	f.Add([]byte(`{"description":[{"text":"a"},{"text":"b"}],"context":{"a":[1,null,"\u00e4"]},"labels":{"":"\u0000"}}`))
	f.Add([]byte(`{"input":"\ud83d\ude00","id":"*","limits":{"maxSteps":1e1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		task, err := messages.DecodeTask(data)
		if err != nil {
			wantFieldError(t, "task", err)
			return
		}
		if task.ID != "" && task.Ref().Check() != nil || !strict.ValidToken(task.Tenant) || !strict.ValidToken(task.Agent) {
			t.Errorf("a task may be decoded that names no run: %v", task.Ref())
		}
		again, err := messages.DecodeTask(task.Encode())
		if err != nil {
			t.Fatalf("what was decoded cannot be decoded again: %v", err)
		}
		noDiff(t, "encoded", string(task.Encode()), string(again.Encode()))
		if task.Fingerprint() != again.Fingerprint() {
			t.Error("the fingerprint changed on the way")
		}
		b, err := record.EncodeRecords([]record.Record{&record.Started{Task: *task}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.DecodeRecords(b); err != nil {
			t.Errorf("a record of the task cannot be read: %v", err)
		}
	})
}

func FuzzDecodeRecords(f *testing.F) {
	seed(f, "testdata/golden/record_*.json")
	for _, records := range [][]record.Record{fullRecords(), emptyRecords()} {
		b, err := record.EncodeRecords(records)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := record.DecodeRecords(data)
		if err != nil {
			wantFieldError(t, "records", err)
			return
		}
		b, err := record.EncodeRecords(records)
		if err != nil {
			t.Fatal(err)
		}
		again, err := record.DecodeRecords(b)
		if err != nil {
			t.Fatalf("what was decoded cannot be decoded again: %v", err)
		}
		c, err := record.EncodeRecords(again)
		if err != nil {
			t.Fatal(err)
		}
		noDiff(t, "encoded", string(b), string(c))
		h := record.Follow(record.Head{}, records...)
		if got := len(record.Events(ref, record.Entry{Head: h, Records: records})); got != h.Events {
			t.Errorf("%d events, and the head says %d", got, h.Events)
		}
	})
}

func FuzzDecodeHead(f *testing.F) {
	f.Add(`{"id":"a","version":2}`)
	f.Add(`null`)
	for _, phase := range []record.Phase{"", record.PhaseActive, record.PhaseFinished} {
		h := prior(phase)
		s, err := record.EncodeHead(&h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := record.DecodeHead(s)
		switch {
		case errors.Is(err, record.ErrNewerVersion):
			return
		case err != nil:
			wantFieldError(t, "head", err)
			return
		}
		s, err = record.EncodeHead(&h)
		if err != nil {
			t.Fatal(err)
		}
		again, err := record.DecodeHead(s)
		if err != nil {
			t.Fatalf("what was decoded cannot be decoded again: %v", err)
		}
		noDiff(t, "head", h, again)
		e := record.Entry{Head: h, Records: []record.Record{&record.Claimed{}, &record.Parked{}}}.At(9)
		record.Events(ref, e)
		record.Follow(h, e.Records...)
	})
}

func FuzzParseTaskSubject(f *testing.F) {
	for _, s := range []string{"tasks.high.acme.r1", "lanes.wake.3.acme.r1", "tasks.*.>.r1", "lanes....", "tasks.normal.a b.\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		p, r, ok := messages.ParseTaskSubject(subject)
		if !ok {
			return
		}
		if r.Check() != nil {
			t.Fatalf("%q names the run %v", subject, r)
		}
		p2, r2, ok := messages.ParseTaskSubject(r.TaskSubject(p))
		if !ok || p2 != p || r2 != r {
			t.Errorf("%q is %v %v, and its own subject %v %v", subject, p, r, p2, r2)
		}
	})
}

func seed(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds in %s: %v", pattern, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}
