//go:build unix

package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/evaluation"
)

// TestEval has the exit codes of suites that pass, fail and are wrong.
func TestEval(t *testing.T) {
	t.Parallel()
	suites, err := filepath.Abs("../examples/evals") // the binary is run elsewhere
	if err != nil {
		t.Fatal(err)
	}
	suites += "/"
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	text := "apiVersion: longshore.run/v1\nkind: EvalSuite\nmetadata: {name: w}\nspec: {cases: [{name: c, input: hi, expect: {schema: {type: 7}}}]}\n"
	if err := os.WriteFile(wrong, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		env    []string
		args   []string
		code   int
		stderr string
	}{
		"passes":           {nil, []string{suites + "demo.yaml"}, 0, "No model is configured"},
		"fails":            {nil, []string{suites + "failing.yaml"}, 1, "below the threshold: 1 of 3 runs passed"},
		"a wrong file":     {nil, []string{wrong}, 2, "wrong.yaml: spec.cases[0] (c).expect.schema"},
		"no file":          {nil, []string{"no-such.yaml"}, 2, "no-such.yaml"},
		"an unknown agent": {nil, []string{suites + "demo.yaml", "--agent", "unknown"}, 2, "demo.yaml: case "},
		"agents elsewhere": {[]string{"NATS_URL=nats://127.0.0.1:1"}, []string{suites + "demo.yaml", "--agents", "x"}, 2, "--agents"},
		"a strange repeat": {nil, []string{suites + "demo.yaml", "--repeat", "0"}, 2, "--repeat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, tt.env, append([]string{"eval", "-o", "json"}, tt.args...)...)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.stderr) {
				t.Fatalf("ended with %d, stdout %q, stderr %q", got.code, got.stdout, got.stderr)
			}
			if tt.code == 2 {
				if got.stdout != "" {
					t.Errorf("stdout %q", got.stdout)
				}
				return
			}
			if r := decode[evaluation.Report](t, got.stdout); r.Passed != (tt.code == 0) || len(r.Cases) != r.Runs || r.Runs == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// The ids of runs lead nowhere when their fleet has ended with the command.
func TestEvalOfAFleetOfItsOwn(t *testing.T) {
	t.Parallel()
	suite, err := filepath.Abs("../examples/evals/failing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := call(t, nil, "eval", suite)
	if got.code != 1 || !strings.Contains(got.stdout, "not-json: ") || strings.Contains(got.stdout+got.stderr, "run 01") {
		t.Errorf("%+v", got)
	}
}
