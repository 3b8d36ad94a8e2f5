package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// written is the record of what a call changed in memories; nil: nothing. A call that failed has changed nothing of the scratchpad, which
// follows from the log; what it has changed elsewhere stays changed, also if rules withheld the result.
func (x *toolWork) written(a *answer, r *record.ToolReturned) *record.MemoryWritten {
	changes := slices.Clone(a.result.Memory)
	if a.result.IsError {
		changes = slices.DeleteFunc(changes, func(c messages.MemoryChange) bool { return c.Memory == messages.MemoryScratchpad })
	}
	if len(changes) == 0 {
		return nil
	}
	w := &record.MemoryWritten{Step: r.Step, StepID: r.StepID, Call: a.call.ID, Changes: changes[:min(len(changes), record.MaxMemoryChanges)]}
	for i := range w.Changes {
		c := &w.Changes[i]
		c.Name, c.Text = x.cfg.Redact(c.Name), x.cfg.Redact(c.Text)
	}
	return w
}

// Fields of an example. Its rating is below 0 of a run that was rated down, which has no text left; 0 without a rating.
const (
	fieldRating  = "rating"
	fieldRatedAt = "ratedAt"
	tagExample   = "example"
)

// leastRating is the least rating of examples that runs of an agent are told.
func leastRating(p *messages.LearnPolicy) float64 {
	if p.Rated {
		return 1e-9
	}
	return 0
}

// learn keeps the run as an example and commits that it did, or why not: the run ends as it would have. A claim that follows on one that died
// in between writes the same item again.
func (x *memoryWork) learn(ctx context.Context, a *agent.LearnExample) (agent.Action, error) {
	s := x.journal.state
	done := &record.MemoryWritten{Step: s.Step, Learned: true}
	var meter longterm.Meter
	change, err := x.keep(meter.Metered(ctx), s, example{text: a.Text, created: x.now(), rating: longterm.Fields{fieldRating: 0.0}})
	switch {
	case err == nil:
		done.Changes = []messages.MemoryChange{*change}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, errFenced) || errors.Is(err, errNoProof):
		return nil, err
	default:
		done.Error = strict.Clip(x.cfg.Redact(err.Error()), maxRecallError)
	}
	done.Embedded = x.embedded(&meter)
	return x.journal.commitPaid(done)
}

var errNothingKept = errors.New("the rules of this run allow nothing to be kept")

// example is a run as memory keeps it.
type example struct {
	text    string
	created time.Time
	rating  longterm.Fields
}

// keep writes the example of a run, without secrets and what rules let no memory hold.
func (x *memoryWork) keep(ctx context.Context, s *agent.State, e example) (*messages.MemoryChange, error) {
	p := s.Agent.LearnPolicy()
	if x.cfg.Memory == nil {
		return nil, errNoMemory
	}
	rules := x.rules.of(s.Agent)
	text, ok := rules.Memory(x.cfg.Redact(e.text))
	if !ok {
		return nil, errNothingKept
	}
	item := longterm.Item{
		ID: x.run.Example(), Scope: longterm.Scope{Agent: s.Agent.Name}, Text: text, Tags: []string{tagExample}, Fields: e.rating,
		Created: e.created, Source: longterm.Source{Run: x.run.Run, Step: s.Step},
	}
	if p.TTL > 0 {
		item.Expires = e.created.Add(time.Duration(p.TTL))
	}
	if x.own != nil { // a text may be embedded by a model that is paid for
		if err := x.own.prove(ctx); err != nil {
			return nil, err
		}
	}
	store := longterm.Retained(x.cfg.Memory, func(at longterm.Place) time.Duration { return rules.Retention(at.Collection) })
	if err := store.Write(ctx, longterm.Place{Tenant: x.run.Tenant, Collection: p.Collection}, []longterm.Item{item}); err != nil {
		return nil, fmt.Errorf("write %s: %w", p.Collection, err)
	}
	return &messages.MemoryChange{
		Memory: messages.MemoryLongTerm, Op: messages.MemoryWrite, Name: p.Collection, ID: item.ID, Text: item.Text, Bytes: len(item.Text),
	}, nil
}

// ErrNotEnded means that a run has not ended: what it teaches is not known yet.
var ErrNotEnded = errors.New("the run has not ended")

// Learn lets the example of a run that has ended follow what a person thinks of it. A run that was rated up becomes one, unless it has not
// completed; the text of one that was rated down is removed, and it is found no longer; what is said of a step is told with the example. An older rating
// of the whole run than the one that is kept changes nothing. Safe to call again. ErrNotEnded: call it later.
func (r *Runner) Learn(ctx context.Context, run messages.Ref, rating messages.Rating) error {
	s := &agent.State{}
	for e, err := range r.cfg.Controller.Log.Read(ctx, run, 0, runlog.Tail) {
		if err != nil {
			return fmt.Errorf("read %s: %w", run, err)
		}
		if err := s.Apply(e); err != nil {
			return err
		}
	}
	switch {
	case s.Agent == nil || s.Agent.LearnPolicy() == nil: // its log is gone
		return nil
	case s.Result == nil:
		return ErrNotEnded
	case !s.Result.Success:
		return nil
	case r.cfg.Memory == nil:
		return errNoMemory
	}
	x := memoryWork{job: &job{r: r, cfg: &r.cfg, run: run}}
	x.rules = &policyWork{job: x.job, state: func() *agent.State { return s }}
	return x.follow(ctx, s, rating)
}

// follow lets an example follow a rating.
func (x *memoryWork) follow(ctx context.Context, s *agent.State, rating messages.Rating) error {
	p := s.Agent.LearnPolicy()
	kept, err := x.cfg.Memory.Read(ctx, longterm.Place{Tenant: x.run.Tenant, Collection: p.Collection}, []string{x.run.Example()})
	if err != nil {
		return fmt.Errorf("read %s: %w", p.Collection, err)
	}
	e := example{created: s.Result.FinishedAt, rating: longterm.Fields{fieldRating: 0.0}}
	if len(kept) > 0 {
		e.text, e.created, e.rating = kept[0].Text, kept[0].Created, kept[0].Fields
	}
	score, _ := longterm.Number(e.rating[fieldRating])
	if rating.Step == "" && rating.Score != 0 {
		if at, ok := longterm.Instant(e.rating[fieldRatedAt]); ok && at > instant(rating.At) {
			return nil
		}
		score = rating.Score
		e.rating = longterm.Fields{fieldRating: score, fieldRatedAt: rating.At.UTC().Format(time.RFC3339Nano)}
	}
	switch {
	case score < 0 && len(kept) > 0 && e.text == "" && rating.Step != "":
		return nil // there is no text to say it with
	case score < 0:
		e.text = ""
	case score == 0 && p.Rated:
		return nil
	default:
		if e.text == "" {
			e.text = s.Example(s.Result.Summary)
		}
		if e.text == "" {
			return nil // it had no plan
		}
		e.text = remarked(e.text, rating)
	}
	_, err = x.keep(ctx, s, e)
	if errors.Is(err, errNothingKept) {
		return nil
	}
	return err
}

// instant is a time as long-term memory compares those in fields.
func instant(t time.Time) float64 {
	at, _ := longterm.Instant(t.UTC().Format(time.RFC3339Nano))
	return at
}

const (
	remarksHead = "\nWhat people said of it:\n"
	maxNote     = 512 // bytes
	maxRemarks  = 16
)

// remarked is the text of an example with what a person said of the run or of a step, in place of what was said of that before.
func remarked(text string, rating messages.Rating) string {
	text, after, _ := strings.Cut(text, remarksHead)
	about := "- the run: "
	if rating.Step != "" {
		about = "- step " + rating.Step + ": "
	}
	var lines []string
	for line := range strings.Lines(after) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, about) {
			lines = append(lines, line)
		}
	}
	said := "good"
	if rating.Score < 0 {
		said = "bad"
	} else if rating.Score == 0 {
		said = "a remark"
	}
	if note := strings.Join(strings.Fields(rating.Note), " "); note != "" {
		said += ", " + strict.Clip(note, maxNote)
	}
	lines = append(lines, about+said)
	return text + remarksHead + strings.Join(lines[max(0, len(lines)-maxRemarks):], "\n")
}
