package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/messages"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded are the events of a file, and its lines as they were stored.
func recorded(tb testing.TB, name string) ([]messages.Event, []string) {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	var events []messages.Event
	var lines []string
	in := bufio.NewScanner(bytes.NewReader(b))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var e messages.Event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			tb.Fatal(err)
		}
		events = append(events, e)
		lines = append(lines, in.Text())
	}
	if err := in.Err(); err != nil {
		tb.Fatal(err)
	}
	return events, lines
}

// event is one of a run, with data as the program writes it.
func event(tb testing.TB, run string, n uint64, name string, data any) messages.Event {
	tb.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		tb.Fatal(err)
	}
	seq, err := json.Marshal(n)
	if err != nil {
		tb.Fatal(err)
	}
	return messages.Event{
		Source: "/tenants/default", Type: "longshore." + name + ".v1", Subject: run, Sequence: string(seq),
		Time: noon, Data: raw,
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// readable makes a terminal's control codes readable, with a line break where the line begins anew.
func readable(s string) string {
	return strings.NewReplacer("\r\x1b[K", "␍␛[K\n", "\x1b", "␛").Replace(s)
}
