package command

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// tree is every command.
func tree() *cobra.Command {
	p := Process{Version: "test", Environ: os.Environ, Stdout: io.Discard, Stderr: io.Discard}
	return p.commands()
}

// Every command's help says what the command does: it begins with a verb in the imperative, such as "List".
func TestHelpBeginsWithAVerb(t *testing.T) {
	verbs := strings.Fields("Add Answer Approve Ask Cancel Change Check Compare Decide Delete Deny Destroy Drain Erase Fill Find Fold Forget Generate Get Give Go Have " +
		"Keep Let List Look Make Measure Pause Print Read Rebuild Refuse Remove Render Replace Resume Run Send Show Start Store Submit Take Tell Watch Write Say")
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
	look(tree())
}

// Every command has -o json, but for those that run until they are stopped, whose lines are log entries, and the one that
// writes JSON anyway and whose -o names the file.
func TestEveryCommandHasJSON(t *testing.T) {
	without := []string{"longshore audit run", "longshore dev", "longshore dispatcher", "longshore memory export", "longshore prices import", "longshore worker"}
	var found []string
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		// A group, which shows its help, does not run.
		if f := cmd.Flag("output"); cmd.Runnable() && (f == nil || f.Shorthand != "o" || !strings.Contains(f.Usage, "json")) {
			found = append(found, cmd.CommandPath())
		} else if cmd.Runnable() && f.Value.Type() != (&render.Format{}).Type() {
			t.Errorf("%s reads its own -o, which is not that of package render", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			look(child)
		}
	}
	look(tree())
	slices.Sort(found)
	if !slices.Equal(found, without) {
		t.Errorf("without -o json are %q, want %q", found, without)
	}
}
