// Package replay is the command `longshore replay`. It stands apart from the other client commands because it links
// the planners of the worker.
package replay

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/replay"
)

// ErrDiffers means that today's code would decide otherwise.
var ErrDiffers = errors.New("today's code decides differently")

// flags of the command.
type flags struct {
	json        *bool
	check, full bool
}

// Command is `longshore replay`. With raw, JSON is written as it is, for an output that is no terminal.
func Command(connect conn.Connect, raw bool) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "replay ID", Short: "Show what each step of a run saw, decided and received",
		Long: "Fold the log of a run again and show what each step saw, decided and received, and when. No model and no tool is\n" +
			"called. With --check the code of this program plans again wherever a worker decided: the command exits with 1 at\n" +
			"the first decision that would differ. (The console checks with the code of the dispatcher.) With -o json each step\n" +
			"is one line.",
	}
	f.json = conn.OneRun(cmd, connect, func(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref) error {
		return f.run(cmd, raw, run, entries(client.Runs().Log(cmd.Context(), run), run))
	})
	set := cmd.Flags()
	set.BoolVar(&f.full, "full", false, "show complete texts, and all messages that each step saw")
	set.BoolVar(&f.check, "check", false, "plan again with the code of this program and compare")
	cmd.MarkFlagsMutuallyExclusive("full", "check")
	return cmd
}

// entries are those of a log, with errors that say what to do.
func entries(log iter.Seq2[record.Entry, error], run messages.Ref) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range log {
			switch {
			case errors.Is(err, record.ErrNewerVersion):
				err = fmt.Errorf("%w: replay it with a newer longshore", err)
			case err != nil:
				err = render.Explain(err, run)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (f *flags) run(cmd *cobra.Command, raw bool, run messages.Ref, log iter.Seq2[record.Entry, error]) error {
	if f.check {
		return f.compare(cmd, raw, log)
	}
	for s, err := range replay.Steps(log, f.full) {
		if err != nil {
			return fmt.Errorf("replay run %s: %w", run.Run, err)
		}
		if *f.json {
			err = render.WriteJSON(cmd, s, raw)
		} else {
			err = f.tell(cmd.OutOrStdout(), &s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *flags) compare(cmd *cobra.Command, raw bool, log iter.Seq2[record.Entry, error]) error {
	r, err := replay.Check(cmd.Context(), log)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if *f.json {
		err = render.WriteJSON(cmd, r, raw)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), verdict(&r))
	}
	if err == nil && r.Difference != nil {
		err = ErrDiffers
	}
	return err
}

func verdict(r *control.RunCheck) string {
	var b strings.Builder
	if d := r.Difference; d != nil {
		fmt.Fprintf(&b, "different at step %d, entry %d, %s, after %d that are the same\n  recorded: %s\n  today:    %s\n",
			d.Step, d.Seq, render.At(d.At, time.Now()), r.Decisions, render.Visible(d.Recorded), render.Visible(d.Planned))
		return b.String()
	}
	fmt.Fprintf(&b, "the same %s\n", render.Count(int64(r.Decisions), "decision"))
	if r.Unchecked > 0 {
		fmt.Fprintf(&b, "%d more are of the clock, of prices or of the platform, and are not made again\n", r.Unchecked)
	}
	return b.String()
}

// tell writes a step for people.
func (f *flags) tell(w io.Writer, s *replay.Step) error {
	var b strings.Builder
	line := func(at time.Time, verb, format string, args ...any) {
		fmt.Fprintf(&b, "  %s  %-8s %s\n", render.Clock(at, time.Now()), verb, render.Visible(fmt.Sprintf(format, args...)))
	}
	kept := ""
	if s.Kept {
		kept = ", kept of the run that was forked"
	}
	fmt.Fprintf(&b, "step %d · %s%s\n", s.Step, render.At(s.At, time.Now()), kept)
	if saw := s.Saw; saw != nil {
		line(s.At, "saw", "%s, %d bytes, tools: %s", render.Count(int64(saw.Messages), "message"), saw.Bytes, strings.Join(saw.Tools, ", "))
		for _, m := range saw.Full {
			line(s.At, "", "%s: %s", m.Role, shown(&m))
		}
	}
	came, decided := s.Came, s.Decided
	for len(came) > 0 || len(decided) > 0 { // both are in order: as they happened, what came before what was decided on it
		if len(decided) == 0 || len(came) > 0 && came[0].Seq <= decided[0].Seq {
			tellFact(line, &came[0])
			came = came[1:]
			continue
		}
		d := &decided[0]
		text := d.Text
		if d.Call != nil {
			text += " " + d.Call.Arguments
		}
		line(d.At, "decided", "%s %s", strings.ReplaceAll(d.Action, "_", " "), text)
		decided = decided[1:]
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func tellFact(line func(at time.Time, verb, format string, args ...any), c *replay.Fact) {
	parts := []string{c.Text}
	for _, call := range c.Calls {
		parts = append(parts, "→ "+call.Name+" "+call.Arguments)
	}
	text := strings.Join(parts, " ")
	if c.Code != "" {
		text += fmt.Sprintf(" (%s)", c.Code)
	}
	if c.Millis > 0 {
		text += fmt.Sprintf(" · %d ms", c.Millis)
	}
	if c.Usage != nil {
		text += " · " + render.Count(c.Usage.Total, "token")
	}
	line(c.At, "came", "%s: %s", strings.ReplaceAll(string(c.Kind), "_", " "), text)
}

// shown is a message in a line.
func shown(m *messages.Message) string {
	parts := []string{}
	for _, b := range m.Content {
		switch {
		case b.ToolCall != nil:
			parts = append(parts, "→ "+b.ToolCall.Name+" "+b.ToolCall.Arguments)
		case b.ToolResult != nil:
			parts = append(parts, "← "+b.ToolResult.Shown())
		case b.Image != nil:
			parts = append(parts, "(an image)")
		case b.File != nil:
			parts = append(parts, b.File.Shown())
		default:
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, " ")
}
