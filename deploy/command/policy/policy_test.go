package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	policycmd "github.com/longshore-run/longshore/deploy/command/policy"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const script = `
scenes:
  - match: card
    turns:
      - calls: [{name: write_file, arguments: {filePath: a.txt, content: "4111 1111 1111 1111"}}]
      - text: done
  - match: ""
    turns: [{text: nothing to see}]
`

const rules = `apiVersion: longshore.run/v1
kind: Policy
spec:
  fleet:
    content: [{name: cards, category: card}]
    approve: [{name: writing, tool: "write_*", first: true}]
    rates: [{name: writes, tool: "write_*", perMinute: 1, perHour: 10}]
  tenants:
    default: {tools: {deny: [list_files]}}
`

// The command shows what rules would have done to recorded runs, all or those that are named, and changes nothing.
func TestPolicyTest(t *testing.T) {
	play, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: scripted.New(play)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	}()
	client, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id, input := range map[string]string{"plain": "say", "paid": "pay with the card"} {
		if _, err := client.Submit(t.Context(), messages.Task{ID: id, Input: messages.TextInput(input)}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Wait(t.Context(), dispatcher.Run(id)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, string, error) {
		root := &cobra.Command{Use: "longshore"}
		root.AddCommand(policycmd.Command(func(context.Context) (*dispatcher.Client, func(), error) { return client, func() {}, nil }, true))
		cli.Usage(root)
		var out, errs bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&errs)
		root.SetArgs(append([]string{"policy", "test"}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), errs.String(), err
	}

	out, errs, err := run(file, "plain", "paid", "-o", "json")
	if err != nil {
		t.Fatal(err, errs)
	}
	var got []string
	for text := range strings.Lines(out) {
		var l struct {
			Run    string `json:"run"`
			Tool   string `json:"tool"`
			Point  string `json:"point"`
			Action string `json:"action"`
			Rule   string `json:"rule"`
			Source string `json:"source"`
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join([]string{l.Run, l.Tool, l.Point, l.Action, l.Rule, l.Source}, " "))
	}
	want := "paid write_file arguments redact cards fleet, paid write_file arguments ask writing fleet"
	if strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", strings.Join(got, ", "), want)
	}
	if strings.Contains(out, "4111") {
		t.Errorf("it tells what a rule hides: %s", out)
	}
	if out, errs, err := run(file); err != nil || !strings.Contains(out, "cards") || errs != "1 of 2 runs would have met a rule\n" {
		t.Errorf("of all runs: %q %q %v", out, errs, err)
	}
	if out, errs, err := run(file, "plain", "gone"); err != nil || out != "" || !strings.HasPrefix(errs, "0 of 1 run would have met a rule\n1 more cannot be read") {
		t.Errorf("of a run that is gone: %q %q %v", out, errs, err)
	}
	absurd := filepath.Join(t.TempDir(), "absurd.yaml")
	if err := os.WriteFile(absurd, []byte(strings.Replace(rules, "perMinute: 1", "perMinute: 0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, []byte(strings.Replace(rules, "deny", "dney", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no file":             {nil, "needs the policy file: "},
		"a file that is gone": {[]string{file + "x"}, "no such file"},
		"a wrong file":        {[]string{wrong}, wrong + ": spec.tenants.default.tools.dney: unknown field: did you mean deny?"},
		"an absurd rate":      {[]string{absurd}, "perMinute"},
		"an odd id":           {[]string{file, "a.b"}, "id: must be 1 to 64 characters"},
		"no runs":             {[]string{file, "--limit", "0"}, "--limit: must be 1 to "},
	} {
		_, _, err := run(tt.args...)
		if _, usage := errors.AsType[*render.UsageError](err); !usage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want a usage error with %q", name, err, tt.want)
		}
	}
}
