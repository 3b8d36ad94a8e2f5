package memory_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/command/memory"
	"github.com/longshore-run/longshore/worker/memory/longterm/quality"
)

func run(t *testing.T, environ []string, args ...string) (string, error) {
	t.Helper()
	cmd := memory.Quality(func() []string { return environ })
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SetContext(t.Context())
	err := cmd.Execute()
	return out.String(), err
}

func TestQuality(t *testing.T) {
	t.Parallel()
	text, err := run(t, nil)
	if err != nil || !strings.Contains(text, "214 questions, vectors of scripted: recall at 5") || !strings.Contains(text, "\nhybrid ") {
		t.Errorf("%v: %s", err, text)
	}
	text, err = run(t, nil, "-o", "json")
	var report quality.Report
	if err != nil || json.Unmarshal([]byte(text), &report) != nil || len(report.Results) != 3 || report.Results[2].All.Asked != 214 {
		t.Errorf("%v: %s", err, text)
	}
	if _, err = run(t, []string{"LONGSHORE_EMBEDDINGS_MODEL=m", "LONGSHORE_EMBEDDINGS_URL=nowhere"}); err == nil || !strings.Contains(err.Error(), "LONGSHORE_EMBEDDINGS_URL") {
		t.Errorf("%v", err)
	}
}
