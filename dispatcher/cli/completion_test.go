package cli_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
)

// offered are the names that a shell offers after a command line, without what is said of them.
func offered(t *testing.T, f *fleet, args ...string) []string {
	t.Helper()
	out, _ := f.run(t, append([]string{"__complete"}, args...)...)
	var names []string
	for line := range strings.Lines(out) {
		if name, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); !strings.HasPrefix(name, ":") {
			names = append(names, name)
		}
	}
	return names
}

func TestCompletionAsksTheFleet(t *testing.T) {
	f := indexed(t)
	f.run(t, "submit", "hello", "--id", "one-1", "--priority", "low")
	f.run(t, "submit", "hello", "--id", "one-2")
	f.run(t, "submit", "hello", "--id", "other", "--tenant", "acme")
	if _, _, err := executeWith(t, f.connect, writerFile, "agents", "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"watch", "one-"}, "one-1 one-2"},
		{[]string{"cancel", "one-2"}, "one-2"},
		{[]string{"status", "--tenant", "acme", ""}, "other"},
		{[]string{"status", "one-1", ""}, ""},
		{[]string{"agents", "get", "wr"}, "writer"},
		{[]string{"submit", "hello", "--agent", "wr"}, "writer"},
		{[]string{"submit", "hello", "--tenant", "ac"}, "acme"},
		{[]string{"submit", "hello", "--priority", ""}, "high low normal"},
		{[]string{"batch", "status", ""}, ""},
		{[]string{"schedules", "show", ""}, ""},
		{[]string{"prompts", "get", ""}, ""},
	} {
		got := offered(t, f, tc.args...)
		slices.Sort(got)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%v: %q, want %q", tc.args, got, tc.want)
		}
	}
}

// Without a dispatcher nothing is offered, soon, and nothing is said of it.
func TestCompletionWithoutADispatcher(t *testing.T) {
	silent := newStreams(t)
	refused := func(context.Context) (*dispatcher.Client, func(), error) { return nil, nil, errors.New("refused") }
	hangs := func(ctx context.Context) (*dispatcher.Client, func(), error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	for name, connect := range map[string]func(context.Context) (*dispatcher.Client, func(), error){
		"no dispatcher": silent.connect, "refused": refused, "hangs": hangs,
	} {
		began := time.Now()
		out, errs, err := executeWith(t, connect, "", "__complete", "batch", "status", "")
		if err != nil || out != ":4\n" || strings.Contains(errs, "refused") || strings.Contains(errs, "dispatcher") {
			t.Errorf("%s: %q, told %q, %v", name, out, errs, err)
		}
		if took := time.Since(began); took > patience/3 {
			t.Errorf("%s: it took %s", name, took)
		}
	}
}

// Every command about one thing that a fleet has offers its name.
func TestCommandsOfferNames(t *testing.T) {
	f := newStreams(t)
	without := []string{"keys api revoke"} // an id of a key is never typed in part
	var look func(path string, cmd *cobra.Command)
	look = func(path string, cmd *cobra.Command) {
		_, args, _ := strings.Cut(cmd.Use, " ")
		if names := []string{"ID", "RUN", "NAME", "WORKER"}; slices.Contains(names, strings.SplitN(args+" ", " ", 2)[0]) && !slices.Contains(without, path) {
			if cmd.ValidArgsFunction == nil {
				t.Errorf("%s offers no names", path)
			}
		}
		for _, child := range cmd.Commands() {
			look(strings.TrimPrefix(path+" "+child.Name(), " "), child)
		}
	}
	root := &cobra.Command{Use: "longshore"}
	root.AddCommand(cli.Commands(f.connect)...)
	look("", root)
}
