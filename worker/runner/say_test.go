package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/files"
	"github.com/longshore-run/longshore/worker/model/scripted"
	"github.com/longshore-run/longshore/worker/runner"
)

// A run says nothing at info unless something is amiss; at debug it tells its way.
func TestWhatARunSays(t *testing.T) {
	const plain = "scenes: [{turns: [{calls: [{name: list_files, arguments: {}}]}, {text: done}]}]"
	const trouble = "scenes: [{turns: [{calls: [{name: read_file, arguments: {filePath: hidden-key}}]}, {error: {class: auth, message: hidden-key is refused}}]}]"
	for name, tc := range map[string]struct {
		script string
		level  slog.Level
		want   []string
	}{
		"plain": {plain, slog.LevelInfo, nil},
		"plain, at debug": {plain, slog.LevelDebug, []string{
			"DEBUG run claimed step=1 attempt=1", "DEBUG model replied step=1 attempt=1", "DEBUG tool started step=1 attempt=1",
			"DEBUG tool returned step=1 attempt=1", "DEBUG model replied step=2 attempt=1", "DEBUG run completed step=2 attempt=1",
		}},
		"trouble": {trouble, slog.LevelInfo, []string{
			"WARN tool failed step=1 attempt=1", "WARN model call failed step=2 attempt=1", "WARN run failed step=2 attempt=1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			script, err := scripted.Parse([]byte(tc.script))
			if err != nil {
				t.Fatal(err)
			}
			family, err := files.Tools()
			if err != nil {
				t.Fatal(err)
			}
			set, err := tools.NewSet(family...)
			if err != nil {
				t.Fatal(err)
			}
			dir, n := t.TempDir(), 0
			var out bytes.Buffer
			r := runner.New(runner.Config{
				Worker: "w", Model: scripted.New(script), Tools: set,
				Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return sandbox.Open(dir, sandbox.Limits{}) },
				Controller: &runlog.Controller{Log: &runlog.Memory{}, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string {
					n++
					return fmt.Sprint("id", n)
				}},
				Agent: func(context.Context, string) (messages.Definition, error) {
					d := messages.Definition{Name: "a", Tools: []string{"list_files", "read_file"}}
					d.SetDefaults()
					return d, nil
				},
				Redact: func(s string) string { return strings.ReplaceAll(s, "hidden-key", "[redacted]") },
				Log:    slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: tc.level})),
			})
			if outcome, err := r.Run(t.Context(), rticket(1)); outcome != runner.Done || err != nil {
				t.Fatal(outcome, err)
			}
			line := regexp.MustCompile(`level=(\w+) msg="?([^"=]+?)"? tenant=` + rrun.Tenant + ` task_id=` + rrun.Run + `((?: (?:step|attempt)=\d+)*)`)
			var got []string
			for _, m := range line.FindAllStringSubmatch(out.String(), -1) {
				got = append(got, m[1]+" "+m[2]+m[3])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || strings.Count(out.String(), "\n") != len(got) {
				t.Errorf("%s\n%s", diff, &out)
			}
			if strings.Contains(out.String(), "hidden-key") {
				t.Errorf("a secret is logged: %s", &out)
			}
		})
	}
}
