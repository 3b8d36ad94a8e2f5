package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command's help says what the command does: it begins with a verb in the imperative, such as "List".
func TestHelpBeginsWithAVerb(t *testing.T) {
	verbs := strings.Fields("Add Answer Approve Ask Cancel Change Check Compare Decide Delete Deny Drain Fill Find Fold Forget Generate Get Go Have " +
		"Keep Let List Look Make Pause Print Read Refuse Remove Render Resume Run Send Show Start Store Submit Take Tell Watch Write Say")
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, text := range []string{cmd.Short, cmd.Long} {
			first := strings.Trim(strings.Fields(text + " -")[0], ",:")
			if text != "" && cmd.HasParent() && cmd.Name() != "completion" && !slices.Contains(verbs, first) {
				t.Errorf("%s: %q begins with no verb that is known here", cmd.CommandPath(), text)
			}
		}
		if cmd.Short == "" {
			t.Errorf("%s has no help", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			look(child)
		}
	}
	look(commands(io.Discard, io.Discard))
}

// Every command has -o json, but for those that run until they are stopped, whose lines are log entries, and the one that
// writes JSON anyway and whose -o names the file.
func TestEveryCommandHasJSON(t *testing.T) {
	without := []string{"longshore audit run", "longshore dev", "longshore dispatcher", "longshore prices import", "longshore worker"}
	var found []string
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		// A group, which shows its help, does not run.
		if f := cmd.Flag("output"); cmd.Runnable() && (f == nil || f.Shorthand != "o" || !strings.Contains(f.Usage, "json")) {
			found = append(found, cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			look(child)
		}
	}
	look(commands(io.Discard, io.Discard))
	slices.Sort(found)
	if !slices.Equal(found, without) {
		t.Errorf("without -o json are %q, want %q", found, without)
	}
}

// A prompt that holds a key of the user's own environment is refused before anything is sent.
func TestPromptsWithKeysOfTheEnvironment(t *testing.T) {
	const key, password, listed = "sk-own-blue-harbour-77", "p4ss-of-redis", "sk-listed-quay-12345"
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("REDIS_URL", "redis://u:"+password+"@127.0.0.1:1")
	t.Setenv("FAST_KEY", listed)
	t.Setenv("LONGSHORE_PROVIDERS", write("providers.yaml", "providers: [{name: fast, kind: openai, keyEnv: FAST_KEY, model: m}]"))
	t.Setenv("NATS_URL", "nats://127.0.0.1:1") // nothing is there
	file := write("p.txt", "Be kind.\nUse "+key+".\n\nOr "+password+", "+listed+".")
	want := []string{"line 2 holds a secret of OPENAI_API_KEY", "line 4 holds a secret of REDIS_URL", "line 4 holds a secret of FAST_KEY"}
	for _, args := range [][]string{{"validate"}, {"validate", "-o", "json"}, {"put", "p"}} {
		var out, errs strings.Builder
		code := run(t.Context(), slices.Concat([]string{"prompts"}, args, []string{"-f", file}), &out, &errs)
		told := out.String() + errs.String()
		for _, part := range want {
			if code != exitFailed || !strings.Contains(errs.String(), part) {
				t.Errorf("%v: ended with %d and %s", args, code, told)
			}
		}
		if strings.Contains(told, key) || strings.Contains(told, password) || strings.Contains(told, listed) {
			t.Errorf("%v shows a secret: %s", args, told)
		}
	}
}
