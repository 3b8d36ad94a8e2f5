package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

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
