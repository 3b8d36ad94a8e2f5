package agent_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// readLog reads a golden log of the contract.
func readLog(t *testing.T, file string) []record.Entry {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []record.Entry
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Seq     uint64          `json:"seq"`
			Head    json.RawMessage `json:"head"`
			Records json.RawMessage `json:"records"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		head, err := record.DecodeHead(string(line.Head))
		if err != nil {
			t.Fatal(err)
		}
		records, err := record.DecodeRecords(line.Records)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, record.Entry{Head: head, Records: records}.At(line.Seq))
	}
	return out
}

// Logs of every landing fold forever, to the same state: through a cache at any point, and in one go.
func TestGoldenLogsFold(t *testing.T) {
	files, err := filepath.Glob("../../messages/testdata/logs/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden logs: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			entries := readLog(t, file)
			whole := fold(t, &agent.State{}, entries)
			if whole.Result == nil {
				t.Errorf("the run has not ended")
			}
			planned(t, whole, entries)
			want := encode(t, whole)
			for cut := range entries {
				cached, err := agent.Decode(encode(t, fold(t, &agent.State{}, entries[:cut+1])))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(encode(t, fold(t, cached, entries[cut+1:])))); diff != "" {
					t.Errorf("folded through a cache after %d entries: %s", cut+1, diff)
				}
			}
		})
	}
}

func fold(t *testing.T, s *agent.State, entries []record.Entry) *agent.State {
	t.Helper()
	for _, e := range entries {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func encode(t *testing.T, s *agent.State) []byte {
	t.Helper()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// planned checks that a log which a planner of today could have written ends as it would end it.
func planned(t *testing.T, whole *agent.State, entries []record.Entry) {
	t.Helper()
	if whole.Agent.OnTruncated == "" {
		return // older than the settings of the loop
	}
	s := fold(t, &agent.State{}, entries[:len(entries)-1])
	for _, r := range entries[len(entries)-1].Records {
		if end, ok := r.(*record.Finished); ok {
			f, ok := agent.Planners()[s.Agent.Planner].Plan(s).(*agent.Finish)
			if !ok || f.Status != end.Result.Status || f.Err == nil && f.Result != end.Result.Result {
				t.Errorf("planned: %+v", f)
			}
			if diff := cmp.Diff(end.Result.Error, f.Err); diff != "" {
				t.Error(diff)
			}
			return
		}
		if err := s.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
}
