package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher"
)

// What a library says of a value it cannot read is for programmers: the flag and what it must be stand there instead.
func TestFlagValuesAreToldInPlainWords(t *testing.T) {
	none := func(context.Context) (*dispatcher.Client, func(), error) { return nil, nil, errors.New("it connects") }
	for want, args := range map[string][]string{
		`--limit: must be a whole number such as 10, got "many"`:                                    {"list", "--limit", "many"},
		`--timeout: must be a time such as 90s, 10m or 2h, got "x"`:                                 {"watch", "r", "--timeout", "x"},
		`--score: must be a number such as 0.5, got "good"`:                                         {"feedback", "r", "--score", "good"},
		`--interval: must be a time such as 90s, 10m or 2h, got "1"`:                                {"top", "--interval", "1"},
		`--since: must be a time such as 90m, 12h or 7d, got "x"`:                                   {"list", "--since", "x"},
		`--output: must be text or json, got "xml"`:                                                 {"list", "-o", "xml"},
		"unknown flag: -z (see longshore list --help)":                                              {"list", "-z"},
		"unknown flag: --nope (see longshore list --help)":                                          {"list", "--nope"},
		"--limit: needs a value":                                                                    {"list", "--limit"},
		`"--=x" is not a flag: flags are written as --name or --name=value`:                         {"list", "--=x"},
		"--file is missing: a file, or - for standard input (see longshore schedules apply --help)": {"schedules", "apply"},
		`unknown command "ps" for "longshore" (did you mean list?)`:                                 {"ps"},
		`unknown command "show" for "longshore" (did you mean status?)`:                             {"show"},
		`unknown command "ui" for "longshore" (did you mean top?)`:                                  {"ui"},
		`unknown command "rerun" for "longshore" (did you mean retry?)`:                             {"rerun"},
		`needs up or down after the run, not "sideways"`:                                            {"feedback", "r", "sideways"},
		"--score: up is a score already: give one of them":                                          {"feedback", "r", "up", "--score", "1"},
		"--note: is the same as --comment: give one of them":                                        {"feedback", "r", "up", "--note", "a", "--comment", "b"},
		"--step: say what you think of it: up, down, --score or --note":                             {"feedback", "r", "--step", "2"},
		`--step: must be the number of a step, from 1, or its id in the plan, not "0"`:              {"feedback", "r", "up", "--step", "0"},
	} {
		if _, _, err := executeWith(t, none, "", args...); err == nil || err.Error() != want {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}

// Only commands about files offer their names.
func TestCompletionOffersNoFiles(t *testing.T) {
	f := newStreams(t)
	const noFiles = ":4\n"
	for _, command := range []string{"status", "watch", "cancel", "submit", "top"} {
		if out, _ := f.run(t, "__complete", command, ""); !strings.Contains(out, noFiles) {
			t.Errorf("%s offers files: %q", command, out)
		}
	}
	if out, _ := f.run(t, "__complete", "agents", "apply", ""); strings.Contains(out, noFiles) {
		t.Errorf("agents apply offers none: %q", out)
	}
}
