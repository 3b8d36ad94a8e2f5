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
	"github.com/longshore-run/longshore/messages"
)

// offered are the names that a shell offers after a command line, without the texts about them.
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

// Of what has a kind and a name, both are offered; of what is a number, those that exist and were not typed yet.
func TestCompletionOfAdministration(t *testing.T) {
	f := indexed(t)
	f.run(t, "submit", "hello", "--tenant", "acme")
	if _, _, err := executeWith(t, f.connect, writerFile, "agents", "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	f.run(t, "quotas", "set", "tenant", "globex", "--weight", "2")
	f.run(t, "pause", "provider", "openai")
	key, _ := f.run(t, "keys", "api", "create", "--tenant", "acme", "--role", "viewer")
	id := strings.Split(key, "_")[1]
	for _, code := range []messages.Code{messages.CodePoison, messages.CodeUnknownAgent} {
		ref := messages.Ref{Tenant: messages.DefaultTenant, Run: "run-" + string(code)}
		err := f.controller.Queue.DeadLetter(t.Context(), ref, "writer", messages.Dead{
			Error: messages.RunError{Code: code, Message: "bad luck"}, Subject: ref.TaskSubject(messages.PriorityNormal),
			Task: []byte(`{"input":"go"}`), Time: time.Now().UTC(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"quotas", "show", ""}, "agent provider tenant"},
		{[]string{"quotas", "set", "tenant", ""}, "acme globex"},
		{[]string{"quotas", "set", "agent", "w"}, "writer"},
		{[]string{"quotas", "show", "tenant", "acme", ""}, ""},
		{[]string{"quotas", "show", "nothing", ""}, ""},
		{[]string{"quotas", "delete", "tenant", ""}, "globex"},
		{[]string{"pause", "te"}, "tenant"},
		{[]string{"pause", "agent", "wr"}, "writer"},
		{[]string{"resume", "provider", ""}, "openai"},
		{[]string{"resume", "tenant", ""}, ""},
		{[]string{"dead", "show", ""}, "1 2"},
		{[]string{"dead", "show", "1", ""}, ""},
		{[]string{"dead", "show", "--tenant", "acme", ""}, ""},
		{[]string{"dead", "show", "--unaddressed", ""}, ""},
		{[]string{"dead", "redrive", "1", ""}, "2"},
		{[]string{"dead", "purge", ""}, "1 2"},
		{[]string{"dead", "list", "--agent", ""}, "default run-lite writer"},
		{[]string{"keys", "api", "revoke", ""}, id},
	} {
		got := offered(t, f, tc.args...)
		slices.Sort(got)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%v: %q, want %q", tc.args, got, tc.want)
		}
	}
}

// Without a dispatcher nothing is offered, soon, and nothing is printed.
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
	var look func(path string, cmd *cobra.Command)
	look = func(path string, cmd *cobra.Command) {
		_, args, _ := strings.Cut(cmd.Use, " ")
		first := strings.Trim(strings.SplitN(args+" ", " ", 2)[0], "[]…")
		if names := []string{"ID", "RUN", "NAME", "WORKER", "KIND", "LETTER", "tenant|agent|provider"}; slices.Contains(names, first) {
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
