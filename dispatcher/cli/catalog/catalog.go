package catalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// What the commands about agents and those about prompts share.

// maxDefinition bounds a file, in bytes.
const maxDefinition = 1 << 20

// oneName wants one valid name of what.
func oneName(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return render.Usagef("needs the %s, got %d arguments", what, len(args))
		}
		return checkName(what, args[0])
	}
}

func checkName(what, name string) error {
	if !strict.ValidToken(name) {
		return render.Usagef("%s: must be 1 to 64 characters of A-Z a-z 0-9 _ -", what)
	}
	return nil
}

// optional is a number that counts only if its flag was given.
func optional(cmd *cobra.Command, flag string, n *uint64) *uint64 {
	if cmd.Flags().Changed(flag) {
		return n
	}
	return nil
}

// revisions are what the commands about agents and prompts share: their history.
type revisions struct{ *conn.Caller }

// writeText writes a text of several lines, fit for the terminal if it goes to one.
func (c revisions) writeText(cmd *cobra.Command, text string) error {
	if !c.Options.Raw {
		text = render.VisibleLines(text)
	}
	return render.Write(cmd.OutOrStdout(), text)
}

// writeHistory writes changes, newest first; number is what theirs are called.
func (c revisions) writeHistory(cmd *cobra.Command, f render.Format, number string, changes []control.Change) error {
	if f.JSON {
		return conn.WriteLines(c.Caller, cmd, changes)
	}
	table := render.NewTable(cmd.OutOrStdout())
	table.Row(number, "WHEN", "BY", "CHANGE")
	for _, change := range changes {
		what := "applied"
		if change.Deleted {
			what = "deleted"
		}
		when := render.At(change.At, c.Options.Now())
		table.Row(strconv.FormatUint(change.Revision, 10), when, change.By, what)
	}
	return table.Flush()
}

// pair is the two revisions that a diff is of, by what follows the name: two, or one and the newest, or the two newest.
func pair(history []control.Change, args []string) (from, to uint64, err error) {
	var numbers []uint64
	for _, a := range args {
		n, err := strconv.ParseUint(a, 10, 64)
		if err != nil || n == 0 {
			return 0, 0, render.Usagef("%q is not a revision", strict.Clip(a, 32))
		}
		numbers = append(numbers, n)
	}
	switch {
	case len(numbers) == 2:
		return numbers[0], numbers[1], nil
	case len(history) == 0, len(numbers) == 0 && len(history) == 1:
		return 0, 0, errors.New("there is only one revision: nothing to compare")
	case len(numbers) == 1:
		return numbers[0], history[0].Revision, nil
	default:
		return history[1].Revision, history[0].Revision, nil
	}
}

// diffArgs wants a name and at most two revisions.
func diffArgs(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 3 {
			return render.Usagef("needs the %s, and two revisions at most; got %d arguments", what, len(args))
		}
		if err := checkName(what, args[0]); err != nil {
			return err
		}
		_, _, err := pair(make([]control.Change, 2), args[1:])
		return err
	}
}

// explainCatalog is an error of the client about an agent or a prompt, on one line that says what to do next.
func explainCatalog(err error, what, name string) error {
	if err == nil {
		return nil
	}
	say := func(format string, args ...any) error {
		return render.Worded(render.Visible(fmt.Sprintf(format, args...)), err)
	}
	var problem *messages.Problem
	switch {
	case errors.Is(err, dispatcher.ErrUnavailable):
		return render.Explain(err, messages.Ref{})
	case errors.Is(err, dispatcher.ErrUnknownPrompt), errors.Is(err, dispatcher.ErrUnknownAgent):
		return say("no such %s or revision: %s; see `longshore %ss list` and `longshore %ss history %s`", what, name, what, what, name)
	case errors.Is(err, dispatcher.ErrRevision):
		return say("%s %s: it has changed in the meantime: see `longshore %ss history %s`, and try again", what, name, what, name)
	case errors.As(err, &problem):
		return say("%s %s: %s", what, name, problem.Detail)
	case errors.Is(err, context.DeadlineExceeded):
		return say("%s %s: no answer in time: is the fleet up?", what, name)
	default:
		return say("%s %s: %v", what, name, err)
	}
}

// comparison is what a diff writes as JSON.
type comparison struct {
	From uint64 `json:"from"` // revisions, of a prompt its versions
	To   uint64 `json:"to"`
	Diff string `json:"diff"` // unified; empty if the texts are the same
}

// diff compares two revisions as texts.
func (c revisions) diff(
	cmd *cobra.Command, output render.Format, what string, args []string,
	history func(context.Context, string) ([]control.Change, error), text func(uint64) (string, error),
) error {
	var changes []control.Change
	if len(args) < 3 {
		var err error
		if changes, err = history(cmd.Context(), args[0]); err != nil {
			return explainCatalog(err, what, args[0])
		}
	}
	from, to, err := pair(changes, args[1:])
	if err != nil {
		return explainCatalog(err, what, args[0])
	}
	before, err := text(from)
	if err != nil {
		return explainCatalog(err, what, args[0])
	}
	after, err := text(to)
	if err != nil {
		return explainCatalog(err, what, args[0])
	}
	diff, err := render.Unified(fmt.Sprintf("%s revision %d", args[0], from), fmt.Sprintf("%s revision %d", args[0], to), before, after)
	if err != nil {
		return err
	}
	if output.JSON {
		return c.WriteJSON(cmd, comparison{from, to, diff})
	}
	return c.writeText(cmd, diff)
}
