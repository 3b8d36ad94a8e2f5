package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// cardExtras is how long a card waits for what is not its status.
const cardExtras = 3 * time.Second

// maxCardFiles is how many files a card names, maxCardCalls how many tool calls a wide one does.
const (
	maxCardFiles = 10
	maxCardCalls = 20
)

// card is what a person wants to know of a run.
type card struct {
	*control.RunStatus

	Run    *control.RunSummary   `json:"run,omitempty"`    // its task and what it used
	Why    *control.Why          `json:"why,omitempty"`    // what it waits for or does, until it has ended
	Result *messages.AgentResult `json:"result,omitempty"` // once it has ended, without its text
	Below  []below               `json:"below,omitempty"`  // runs to which it delegated, and those below them
	More   bool                  `json:"more,omitempty"`   // there are more runs below
}

// cardOf asks for all of a card. Only the status must be there: the rest may be gone, or not for this user.
func cardOf(ctx context.Context, client *dispatcher.Client, run messages.Ref) (*card, error) {
	status, err := client.Status(ctx, run)
	if err != nil {
		return nil, err
	}
	c := &card{RunStatus: status}
	extras, cancel := context.WithTimeout(ctx, cardExtras)
	defer cancel()
	if r, err := client.Runs().Summary(extras, run); err == nil {
		c.Run = r
	}
	if !status.Status.Ended() {
		if why, err := client.Runs().Why(extras, run); err == nil {
			c.Why = why
		}
	} else if r, err := client.Result(extras, run); err == nil {
		r.Result = nil
		c.Result = r
	}
	if status.Delegations > 0 {
		c.Below, c.More = runsBelow(extras, client, c)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, fmt.Errorf("look up the run: %w", ctx.Err())
	}
	return c, nil
}

// cardRow is a row of a card: one without a value is left out.
type cardRow struct{ name, value string }

func (c runs) writeCard(cmd *cobra.Command, k *card, wide bool) error {
	const name = len("submitted  ")
	now, room := c.Options.Now(), render.PlainWidth
	if !c.Options.Raw {
		room = max(c.Options.Width()-name-1, render.MinWidth)
	}
	return k.write(cmd.OutOrStdout(), now, room, wide)
}

// write writes a card, whose values take so many columns at most unless it is wide.
func (k *card) write(w io.Writer, now time.Time, room int, wide bool) error {
	rows := k.rows(now)
	if wide {
		rows = append(rows, k.wideRows(now)...)
	}
	table := render.NewTable(w)
	for _, row := range rows {
		value := render.Visible(row.value)
		if !wide {
			value = render.Truncate(value, room)
		}
		if value == "" {
			continue
		}
		table.Row(row.name, value)
	}
	return table.Flush()
}

func (k *card) rows(now time.Time) []cardRow {
	rows := []cardRow{{"id", k.ID}, {"tenant", k.Tenant}, {"status", k.state(now)}}
	if k.Why != nil {
		rows = append(rows, cardRow{"why", render.Why(k.Why, now)})
	}
	if f := k.Cause; f != nil {
		rows = append(rows, cardRow{"model", fmt.Sprintf("attempt %d failed: %s", f.Attempt, f.Text())})
		if k.Until != nil {
			rows = append(rows, cardRow{"next try", render.At(*k.Until, now)})
		}
	}
	if r := k.Result; r != nil && r.Error != nil {
		rows = append(rows, cardRow{"error", r.Error.Message + " (" + string(r.Error.Code) + ")"})
	}
	if r := k.Run; r != nil {
		rows = append(rows, cardRow{"agent", r.Agent}, cardRow{"input", r.Input})
	}
	rows = append(rows, k.belowRows()...)
	rows = append(rows, cardRow{"steps", k.steps()}, cardRow{"cost", k.cost()}, cardRow{"attempts", k.attempts()}, cardRow{"files", k.files()})
	rows = append(rows, cardRow{"submitted", k.submitted(now)}, cardRow{"took", k.took()})
	rows = append(rows, cardRow{"updated", since(k.Updated, now)})
	if k.Webhook != nil {
		rows = append(rows, cardRow{"webhook", webhookText(k.Webhook)})
	}
	return append(rows, cardRow{"next", k.next()})
}

// wideRows are those that a person rarely asks for.
func (k *card) wideRows(now time.Time) []cardRow {
	var rows []cardRow
	if r := k.Run; r != nil {
		rows = append(rows, cardRow{"parent", r.Parent}, cardRow{"session", r.Session}, cardRow{"priority", string(r.Priority)}, cardRow{"labels", labelsText(r.Labels)})
		if r.ModelCalls > 0 || r.ToolCalls > 0 {
			rows = append(rows, cardRow{"calls", fmt.Sprintf("%s of models, %d of tools, %d failed", render.Count(int64(r.ModelCalls), "call"), r.ToolCalls, r.ToolErrors)})
		}
		rows = append(rows, cardRow{"model", r.Model}, cardRow{"summary", r.Summary})
		if r.Started != nil {
			rows = append(rows, cardRow{"started", since(*r.Started, now)})
		}
		if r.Finished != nil {
			rows = append(rows, cardRow{"finished", since(*r.Finished, now)})
		}
	}
	if used := k.used(); used != nil && used.Total > 0 {
		rows = append(rows, cardRow{"tokens", fmt.Sprintf("%d: %d in, %d out", used.Total, used.Input, used.Output)})
	}
	if k.Sequence > 0 {
		rows = append(rows, cardRow{"events", strconv.FormatUint(k.Sequence, 10)})
	}
	if k.Result == nil {
		return rows
	}
	if p := k.Result.Provenance; p != nil && p.Revision > 0 {
		rows = append(rows, cardRow{"revision", fmt.Sprintf("%d of agent %s", p.Revision, p.Agent)})
	}
	for i, a := range k.Result.Actions {
		if i == maxCardCalls {
			rows = append(rows, cardRow{"", fmt.Sprintf("%d more calls: see -o json", len(k.Result.Actions)-i)})
			break
		}
		text := fmt.Sprintf("step %d: %s (%s)", a.Step, report.Describe(messages.ToolCall{Name: a.Name, Arguments: a.Input}), render.Millis(a.Millis))
		if !a.OK {
			text += " failed: " + string(a.Code)
		}
		rows = append(rows, cardRow{"call", text})
	}
	return rows
}

// state is the status in words.
func (k *card) state(now time.Time) string {
	what := string(k.Status)
	if k.Status == messages.StatusWaiting && k.Waits != "" {
		if what += " for " + k.Waits; k.WaitsFor != "" {
			what += " (" + k.WaitsFor + ")"
		}
	}
	if k.NotBefore != nil {
		what = "scheduled until " + render.At(*k.NotBefore, now)
	}
	if k.Cancel {
		what += ", asked to stop"
	}
	if k.Ignored {
		what += " (a decision without a valid signature was ignored)"
	}
	return what
}

func (k *card) steps() string {
	switch {
	case k.Result != nil:
		return strconv.Itoa(k.Result.Steps)
	case k.Run != nil && k.Run.Steps > 0:
		return strconv.Itoa(k.Run.Steps)
	default:
		return ""
	}
}

func (k *card) cost() string {
	usd := (*float64)(nil)
	switch {
	case k.Result != nil:
		usd = k.Result.CostEstimate
	case k.Run != nil:
		usd = k.Run.Cost
	}
	used := k.used()
	switch {
	case usd != nil:
		return messages.Money(*usd)
	case used != nil && used.Total > 0:
		return "unknown: a model has no price"
	default:
		return ""
	}
}

// used are the tokens; nil: they are not known.
func (k *card) used() *messages.Usage {
	switch {
	case k.Result != nil:
		return &k.Result.TokenUsage
	case k.Run != nil:
		return &k.Run.Usage
	default:
		return nil
	}
}

// attempts says that the run was taken up more than once.
func (k *card) attempts() string {
	if k.Result != nil && k.Result.RetryInfo != nil && k.Result.RetryInfo.Attempts > 1 {
		return strconv.Itoa(k.Result.RetryInfo.Attempts)
	}
	if k.Attempt > 0 {
		return fmt.Sprintf("%d since its last progress", k.Attempt)
	}
	return ""
}

func (k *card) files() string {
	if k.Result == nil {
		return ""
	}
	files := k.Result.Outputs
	text := strings.Join(files[:min(len(files), maxCardFiles)], ", ")
	if more := len(files) - maxCardFiles; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (k *card) submitted(now time.Time) string {
	if k.Run == nil {
		return ""
	}
	if at := conn.SubmittedAt(k.Run); !at.IsZero() {
		return since(at, now)
	}
	return ""
}

func (k *card) took() string {
	if r := k.Result; r != nil && !r.StartedAt.IsZero() {
		return render.Took(r.FinishedAt.Sub(r.StartedAt))
	}
	return ""
}

// next is what a person may want to do now.
func (k *card) next() string {
	run := messages.Ref{Tenant: k.Tenant, Run: k.ID}
	switch {
	case k.Waits == queue.ParkAnswer:
		return render.Command("answer", run) + " TEXT"
	case k.Waits == queue.ParkApproval && k.Why != nil && k.Why.Call != "":
		run.Run += " " + report.ShellWord(k.Why.Call)
		return render.Command("approve", run)
	case k.Waits == queue.ReasonBudget:
		return render.Command("approve", run)
	case !k.Status.Ended():
		return render.Command("watch", run)
	case k.Status == messages.StatusCompleted:
		return render.Command("result", run)
	default:
		return render.Command("retry", run)
	}
}

func since(at, now time.Time) string {
	return fmt.Sprintf("%s (%s ago)", render.At(at, now), render.Span(now.Sub(at)))
}

func labelsText(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+cmp.Or(labels[k], `""`))
	}
	return strings.Join(parts, ", ")
}
