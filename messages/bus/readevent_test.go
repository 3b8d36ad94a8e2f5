package bus

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
)

// goldenEvents are the lines of the events that are kept as examples.
func goldenEvents(tb testing.TB) (lines [][]byte) {
	tb.Helper()
	files, err := filepath.Glob("../testdata/events/*.jsonl")
	if err != nil || len(files) == 0 {
		tb.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		lines = append(lines, bytes.Split(bytes.TrimSpace(data), []byte("\n"))...)
	}
	return lines
}

func unmarshalled(data []byte) (e messages.Event, err error) {
	err = json.Unmarshal(data, &e)
	return e, err
}

// Every event that is written is read without encoding/json, and as encoding/json reads it.
func TestReadWrittenEvents(t *testing.T) {
	t.Parallel()
	for _, line := range goldenEvents(t) {
		want, err := unmarshalled(line)
		if err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := readWritten(written)
		if !ok {
			t.Errorf("not read: %s", written)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// FuzzReadEvent compares what is read with what encoding/json reads.
func FuzzReadEvent(f *testing.F) {
	for _, line := range goldenEvents(f) {
		f.Add(line)
	}
	const head = `{"specversion":"1.0","id":"r.1","source":"/tenants/a","type":"longshore.step_start.v1","subject":"r","time":"2026-01-02T03:04:05Z",` +
		`"datacontenttype":"application/json","sequence":"1"`
	for _, rest := range []string{
		`,"data":{}}`, `,"data":null}`, `,"data": {}}`, `,"data":{} }`, `,"data":{},"id":"other"}`, `,"data":}`, `,"data":{}`, `,"data":{}}}`,
		`,"traceparent":"00-a-b-01","data":1}`, `,"traceparent":"","data":"x"}`, `,"traceparent":"\u0041","data":"x"}`, `,"Data":{}}`, `}`,
	} {
		f.Add([]byte(head + rest))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wantErr := unmarshalled(data)
		got, err := readEvent(data)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("got %v, want %v", err, wantErr)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkReadEvent(b *testing.B) {
	lines := goldenEvents(b)
	for name, read := range map[string]func([]byte) (messages.Event, error){"ours": readEvent, "json": unmarshalled} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := read(lines[i%len(lines)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
