package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

var errConnected = errors.New("connected")

// dry runs a command line as main does, with a connection that counts and fails.
func dry(t *testing.T, in string, args ...string) (stdout, stderr string, connects int, err error) {
	t.Helper()
	connect := func(context.Context) (*dispatcher.Client, func(), error) {
		connects++
		return nil, nil, errConnected
	}
	stdout, stderr, err = executeWith(t, connect, in, args...)
	return stdout, stderr, connects, err
}

func executeWith(t *testing.T, connect conn.Connect, in string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	root := newRoot(t, connect)
	var out, errs bytes.Buffer
	root.SetIn(strings.NewReader(in))
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// newRoot has our commands and some that are used wrongly in other ways.
func newRoot(t *testing.T, connect conn.Connect) *cobra.Command {
	t.Helper()
	root := &cobra.Command{Use: "longshore"}
	group := &cobra.Command{Use: "group"}
	needy := &cobra.Command{Use: "needy", Run: func(*cobra.Command, []string) {}}
	needy.Flags().Bool("must", false, "")
	needy.Flags().Bool("a", false, "")
	needy.Flags().Bool("b", false, "")
	if err := needy.MarkFlagRequired("must"); err != nil {
		t.Fatal(err)
	}
	needy.MarkFlagsMutuallyExclusive("a", "b")
	group.AddCommand(needy)
	root.AddCommand(group)
	root.AddCommand(cli.Commands(connect)...)
	cli.Usage(root)
	return root
}

// labels are so many labels of a worker.
func labels(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("k%d=v", i))
	}
	return strings.Join(all, ",")
}

func TestMistakesAreUsageErrorsAndNeverConnect(t *testing.T) {
	const token = "must be 1 to 64 characters of A-Z a-z 0-9 _ -"
	for name, tc := range map[string]struct {
		args string // separated by |
		in   string
		want string
	}{
		"unknown command":         {"sumbit|x", "", `unknown command "sumbit" for "longshore" (did you mean submit?)`},
		"another word for list":   {"ps", "", `unknown command "ps" for "longshore" (did you mean list?)`},
		"another word for status": {"show|x", "", `unknown command "show" for "longshore" (did you mean status?)`},
		"another word for top":    {"ui", "", `unknown command "ui" for "longshore" (did you mean top?)`},
		"another word for retry":  {"rerun|x", "", `unknown command "rerun" for "longshore" (did you mean retry?)`},
		"nothing like it":         {"qqqqqqqq", "", `unknown command "qqqqqqqq" for "longshore" (see longshore --help)`},
		"hostile command":         {"\x1b[2J", "", `unknown command "\x1b[2J" for "longshore" (see longshore --help)`},
		"unknown subcommand":      {"group|x", "", `unknown command "x" for "longshore group" (see longshore group --help)`},
		"unknown help topic":      {"help|nothing", "", `unknown command "nothing" for "longshore" (see longshore --help)`},
		"unknown shell":           {"completion|dos", "", `unknown command "dos" for "longshore completion" (see longshore completion --help)`},
		"shell and more":          {"completion|bash|x", "", `unknown command "x" for "longshore completion bash"`},
		"unknown flag":            {"list|--nope", "", "unknown flag: --nope (see longshore list --help)"},
		"unknown flag of root":    {"--nope", "", "unknown flag: --nope (see longshore --help)"},
		"hostile flag":            {"list|--\x1b[2J", "", `unknown flag: --\x1b[2J (see longshore list --help)`},
		"required flag":           {"group|needy", "", "--must is missing (see longshore group needy --help)"},
		"exclusive flags":         {"group|needy|--must|--a|--b", "", "if any flags in the group [a b] are set none of the others can be; [a b] were all set"},
		"list with an argument":   {"list|x", "", `unknown command "x" for "longshore list"`},
		"list of no time":         {"list|--since|0s", "", "--since: must be more than 0"},
		"list since yesterday":    {"list|--since|yesterday", "", `--since: must be a time such as 90m, 12h or 7d, got "yesterday"`},
		"list of nothing":         {"list|--limit|0", "", "--limit: must be 1 to 10000"},
		"list of too many":        {"list|--limit|10001", "", "--limit: must be 1 to 10000"},
		"list of unknown status":  {"list|--status|dead", "", `--status: "dead" is none of queued, running, waiting, completed, failed, cancelled`},
		"list of a tenant":        {"list|--tenant|*", "", "--tenant: " + token},
		"yaml":                    {"list|-o|yaml", "", `--output: must be text or json, got "yaml"`},
		"watch nothing":           {"watch", "", "needs the id of one run, got 0 arguments"},
		"watch two":               {"watch|a|b", "", "needs the id of one run, got 2 arguments"},
		"watch everything":        {"watch|>", "", "id: " + token},
		"watch of a tenant":       {"watch|a|--tenant|a.b", "", "--tenant: " + token},
		"result of everything":    {"result|*", "", "id: " + token},
		"timeout without wait":    {"result|a|--timeout|1s", "", "--timeout: is only for --wait"},
		"negative timeout":        {"result|a|--wait|--timeout|-1s", "", "--timeout: must be more than 0"},
		"cancel everything":       {"cancel|*", "", "id: " + token},
		"cancel nothing":          {"cancel", "", "needs the id of one run, got 0 arguments"},
		"status of nothing":       {"status|", "", "id: " + token},
		"submit nothing":          {"submit", "", "needs the task's text as one argument, or - to read it from standard input; got 0 arguments: quote the text"},
		"submit words":            {"submit|say|hello", "", "needs the task's text as one argument, or - to read it from standard input; got 2 arguments: quote the text"},
		"submit an empty text":    {"submit|", "", "input: is empty"},
		"submit an empty input":   {"submit|-", "", "input: is empty"},
		"submit a large input":    {"submit|-", strings.Repeat("x", 1<<20+1), "read standard input: larger than 1048576 bytes, which is the limit"},
		"submit no text":          {"submit|-", "\xff", "input: invalid UTF-8"},
		"submit with bad id":      {"submit|x|--id|a b", "", "--id: " + token},
		"submit with empty id":    {"submit|x|--id|", "", "--id: " + token},
		"submit to empty tenant":  {"submit|x|--tenant|", "", "--tenant: " + token},
		"submit to empty agent":   {"submit|x|--agent|", "", "--agent: " + token},
		"submit to empty session": {"submit|x|--session|", "", "--session: " + token},
		"submit with no priority": {"submit|x|--priority|", "", "--priority: must be high, normal or low"},
		"submit urgently":         {"submit|x|--priority|urgent", "", "--priority: must be high, normal or low"},
		"label without value":     {"submit|x|--label|team", "", `--label: "team" is not key=value`},
		"label without key":       {"submit|x|--label|=a", "", `--label: "=a" is not key=value`},
		"label twice":             {"submit|x|--label|a=1|--label|a=2", "", `--label: "a" is given twice`},
		"long label":              {"submit|x|--label|a=" + strings.Repeat("x", 257), "", "--label a: larger than 256 bytes"},
		"required word":           {"submit|x|--requires|gpu", "", `--requires: "gpu" is not KEY=VALUE`},
		"required pair and word":  {"submit|x|--requires|gpu=true,zone", "", `--requires: "zone" is not KEY=VALUE`},
		"required twice":          {"submit|x|--requires|gpu=true,gpu=false", "", `--requires: "gpu" is there twice`},
		"required of no name":     {"submit|x|--requires|=true", "", `--requires: "=true" is not KEY=VALUE`},
		"required of no value":    {"submit|x|--requires|gpu=", "", "--requires: label.gpu: " + token},
		"required nothing":        {"submit|x|--requires| ", "", "--requires: must be labels such as gpu=true,zone=a; leave it out for any worker"},
		"hostile requirement":     {"submit|x|--requires|gpu=\x1b[2J", "", "--requires: label.gpu: " + token},
		"seventeen requirements":  {"submit|x|--requires|" + labels(17), "", "--requires: has more than 16 labels"},
		"no steps":                {"submit|x|--max-steps|0", "", "--max-steps: must be at least 1"},
		"negative steps":          {"submit|x|--max-steps|-1", "", "--max-steps: must be 1 to 10000"},
		"half a step":             {"submit|x|--max-steps|1.5", "", `--max-steps: must be a whole number such as 10, got "1.5"`},
		"context of an array":     {"submit|x|--context|[]", "", "--context: must be an object"},
		"empty context":           {"submit|x|--context| ", "", "--context: must be an object"},
		"context twice":           {`submit|x|--context|{"a":{"b":1,"b":2}}`, "", "--context a.b: given twice"},
		"bad flag before reading": {"submit|-|--priority|urgent", "never read", "--priority: must be high, normal or low"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, connects, err := dry(t, tc.in, strings.Split(tc.args, "|")...)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if usage, ok := errors.AsType[*render.UsageError](err); !ok || usage.Unwrap() == nil {
				t.Errorf("a %T, not a *UsageError", err)
			}
			if connects != 0 {
				t.Error("it connected")
			}
			if stdout+stderr != "" {
				t.Errorf("it printed %q", stdout+stderr)
			}
		})
	}
}

func TestSoundCommandsConnect(t *testing.T) {
	for _, args := range []string{
		"list", "list|--status|failed|--status|running|--limit|5|--since|2h|-o|json", "watch|a", "result|a|--wait|--timeout|5s",
		"cancel|a|--reason|x", "status|a|--tenant|acme|-o|text", "submit|-",
		`submit|x|--agent|a|--id|i|--session|s|--priority|low|--label|a=1|--label|b=c=d|--max-steps|3|--context| {"a":1}|--requires|gpu=true,zone=a`, "submit|x|--requires|" + labels(16),
	} {
		_, _, connects, err := dry(t, "a task", strings.Split(args, "|")...)
		if !errors.Is(err, errConnected) || connects != 1 {
			t.Errorf("%s: connected %d times: %v", args, connects, err)
		}
		if _, is := errors.AsType[*render.UsageError](err); is {
			t.Errorf("%s: not a mistake of the caller: %v", args, err)
		}
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	for _, args := range []string{"", "help", "help|submit", "help|group|needy", "list|--help", "group", "--help", "completion"} {
		var given []string
		if args != "" {
			given = strings.Split(args, "|")
		}
		stdout, _, connects, err := dry(t, "", append([]string{}, given...)...)
		if err != nil || connects != 0 || !strings.Contains(stdout, "Usage:") {
			t.Errorf("%q: %v, printed %q", args, err, stdout)
		}
	}
}

func TestCommandsReadNoMoreThanATask(t *testing.T) {
	endless := readerFunc(func(p []byte) (int, error) { return len(p), nil })
	root := &cobra.Command{Use: "longshore"}
	root.AddCommand(cli.Commands(nil)...)
	cli.Usage(root)
	root.SetIn(endless)
	root.SetArgs([]string{"submit", "-"})
	err := root.ExecuteContext(t.Context())
	if _, ok := errors.AsType[*render.UsageError](err); !ok {
		t.Errorf("got %v", err)
	}
}

func TestReadingATaskEndsWithItsContext(t *testing.T) {
	block, unblock := make(chan struct{}), make(chan struct{})
	stuck := readerFunc(func([]byte) (int, error) {
		close(block)
		<-unblock
		return 0, errors.New("done")
	})
	defer close(unblock)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-block
		cancel()
	}()
	root := &cobra.Command{Use: "longshore"}
	root.AddCommand(cli.Commands(nil)...)
	root.SetIn(stuck)
	root.SetArgs([]string{"submit", "-"})
	root.SilenceErrors, root.SilenceUsage = true, true
	for _, cmd := range root.Commands() {
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
	}
	if err := root.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
