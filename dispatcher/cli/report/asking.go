package report

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// NeedsPerson means that a run waits for a person and the command is not interactive. The run was left as it is.
type NeedsPerson struct{ text string } //nolint:errname // it is what the run needs, not what went wrong

func (e *NeedsPerson) Error() string { return e.text }

// Asker asks the person at a terminal what a run waits for. One question at a time; safe for concurrent use.
type Asker struct {
	turn  chan struct{} // held while something is asked
	lines chan string   // of the input; closed at its end
	in    io.Reader
	began bool // guarded by turn
}

// NewAsker returns an Asker that reads answers from in, a terminal.
func NewAsker(in io.Reader) *Asker {
	return &Asker{turn: make(chan struct{}, 1), lines: make(chan string), in: in}
}

// read hands on the lines of the input. Nothing can end a read of a terminal but the end of the process, which is why
// there is one such goroutine for the whole life of an Asker.
func (a *Asker) read() {
	defer close(a.lines)
	for in := bufio.NewScanner(a.in); in.Scan(); {
		a.lines <- in.Text()
	}
}

// line waits for a line; it ends with ctx.
func (a *Asker) line(ctx context.Context) (string, error) {
	if !a.began {
		a.began = true
		go a.read()
	}
	select {
	case text, ok := <-a.lines:
		if !ok {
			return "", io.EOF
		}
		return strings.TrimSpace(text), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Confirm asks a question that is answered with yes or no; an empty line is the standard answer. The error io.EOF says that the input has
// ended.
func (a *Asker) Confirm(ctx context.Context, out io.Writer, question string, standard bool) (bool, error) {
	answers := " [y/N] "
	if standard {
		answers = " [Y/n] "
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	for {
		if err := render.Write(out, render.Visible(question)+answers); err != nil {
			return false, err
		}
		text, err := a.line(ctx)
		if err != nil {
			return false, err
		}
		if text == "" {
			return standard, nil
		}
		if yes, _, understood := decision(text); understood {
			return yes, nil
		}
	}
}

// attend prompts for the decision or answer that an event says the run waits for, and sends it. It returns a *NeedsPerson if there is
// no terminal to prompt on.
func (a *Asker) attend(ctx context.Context, client *dispatcher.Client, run messages.Ref, e *messages.Event, r *Reporter, advice string) error {
	if e.Name() != messages.EventRunWaiting {
		return nil
	}
	var waits messages.RunWaiting
	if json.Unmarshal(e.Data, &waits) != nil {
		return nil
	}
	if !queue.ParkReasonOf(waits.Reason).Person {
		return nil // it continues by itself
	}
	status, err := client.Status(ctx, run)
	if err != nil || status.Waits != waits.Reason || status.Sequence > e.Number() {
		return nil // it was decided elsewhere, or the watch replays old events
	}
	if a == nil {
		return &NeedsPerson{nobodyAsked(run, &waits) + advice}
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err = a.ask(ctx, client, run, &waits, r)
	r.release()
	switch {
	case errors.Is(err, io.EOF):
		return &NeedsPerson{nobodyAsked(run, &waits) + advice}
	case errors.Is(err, dispatcher.ErrDecided):
		r.Note(run.Run, render.OneLine(err).Error())
		return nil
	default:
		return err
	}
}

func (a *Asker) ask(ctx context.Context, client *dispatcher.Client, run messages.Ref, waits *messages.RunWaiting, r *Reporter) error {
	by := r.options.User
	if waits.Reason == queue.ParkAnswer {
		for {
			r.say("Type your answer and press Enter:")
			text, err := a.line(ctx)
			if err != nil {
				return err
			}
			if text == "" {
				continue
			}
			_, err = client.Approvals().Answer(ctx, run, control.AnswerRequest{Call: waits.CallID, Text: text, By: by})
			return err
		}
	}
	d := dispatcher.Decision{By: by}
	if waits.Reason == queue.ParkApproval {
		asked, err := askedOf(ctx, client, run)
		if err != nil || asked == nil {
			return err
		}
		d.Call, d.Hash = asked.Call, asked.Hash
		r.say("May run " + run.Run + " call " + asked.Tool + " with these arguments?\n" + asked.Arguments)
	}
	for {
		r.say("yes or no? With \"no, REASON\" the agent learns why")
		text, err := a.line(ctx)
		if err != nil {
			return err
		}
		yes, reason, understood := decision(text)
		switch {
		case !understood:
			continue
		case yes:
			_, err = client.Approvals().Approve(ctx, run, d)
			return err
		}
		d.Reason = reason
		_, err = client.Approvals().Deny(ctx, run, d)
		return err
	}
}

// decision reads yes or no, with a reason behind no. Whatever else a person types is neither.
func decision(text string) (yes bool, reason string, understood bool) {
	word, rest := text, ""
	if i := strings.IndexAny(text, " ,:;"); i >= 0 {
		word, rest = text[:i], strings.Trim(text[i:], " ,:;")
	}
	switch strings.ToLower(word) {
	case "y", "yes":
		return true, "", rest == ""
	case "n", "no":
		return false, rest, true
	default:
		return false, "", false
	}
}

// askedOf is what a run asks an approval for now; nil: nothing.
func askedOf(ctx context.Context, client *dispatcher.Client, run messages.Ref) (*control.WaitingApproval, error) {
	list, err := client.Approvals().List(ctx, run.Tenant, control.MaxApprovals)
	if err != nil {
		return nil, err
	}
	for i := range list.Approvals {
		if list.Approvals[i].ID == run.Run {
			return &list.Approvals[i], nil
		}
	}
	return nil, nil
}

// nobodyAsked says what to do about a run that waits for a person.
func nobodyAsked(run messages.Ref, waits *messages.RunWaiting) string {
	do := render.Command("approve", run)
	switch {
	case waits.Reason == queue.ParkAnswer:
		do = render.Command("answer", run) + " TEXT"
	case waits.CallID != "":
		do = render.Command("approve", messages.Ref{Tenant: run.Tenant, Run: run.Run + " " + ShellWord(waits.CallID)})
	}
	return render.Visible(fmt.Sprintf("run %s waits for %s, and there is no terminal to ask on: `%s`", run.Run, waits.Reason, do))
}

// say writes text above no progress line, whole, and keeps the line away so that a person can type; release ends that.
func (r *Reporter) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = true
	r.print(r.erase() + render.VisibleLines(text) + "\n")
}

func (r *Reporter) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = false
}

// ShellWord is a word that a shell takes as it is.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r)
	}
	if s != "" && !strings.HasPrefix(s, "-") && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
