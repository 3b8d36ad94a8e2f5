package cli_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// Ids as they are generated, of which two begin alike.
const (
	oneID   = "01KAR00000AAAAAAAAAAAAAAA1"
	twoID   = "01KAR00000BBBBBBBBBBBBBBB2"
	threeID = "01KAS11111CCCCCCCCCCCCCCC3"
)

func withRuns(t *testing.T) *fleet {
	t.Helper()
	f := indexed(t)
	for _, id := range []string{oneID, twoID, threeID} {
		f.run(t, "submit", "x", "--id", id)
	}
	f.work(t, dispatcher.Run("order-12"), messages.AgentResult{
		Status: messages.StatusFailed, Error: &messages.RunError{Code: messages.CodeBudget, Message: "too dear"}, Outputs: []string{"a.md", "b.md"},
	})
	return f
}

func TestTheBeginningOfAnID(t *testing.T) {
	f := withRuns(t)
	stdout, stderr := f.run(t, "status", "01KAS")
	if !strings.Contains(stdout, "id         "+threeID+"\n") || stderr != "run "+threeID+"\n" {
		t.Errorf("%q, told %q", stdout, stderr)
	}
	_, _, err := executeWith(t, f.connect, "", "cancel", "01KAR")
	if _, is := errors.AsType[*render.UsageError](err); !is || !strings.HasPrefix(err.Error(), "several runs begin with 01KAR: ") ||
		!strings.Contains(err.Error(), oneID) || !strings.Contains(err.Error(), twoID) {
		t.Errorf("an ambiguous one: %v", err)
	}
	if out, _ := f.run(t, "cancel", "01KAR00000B"); out != "run "+twoID+" is cancelled\n" {
		t.Error(out)
	}
	// An id that was chosen by hand is read by its beginning, and never changed by it.
	if out, _ := f.run(t, "status", "order-1"); !strings.Contains(out, "id         order-12\n") {
		t.Error(out)
	}
	f.fails(t, "no run order-1 of tenant default: `longshore list` shows those of the last day; --tenant names another tenant", "cancel", "order-1")
	f.fails(t, "no run 01K of tenant default: `longshore list` shows those of the last day; --tenant names another tenant", "status", "01K")
}

func TestTheLastRun(t *testing.T) {
	f := withRuns(t)
	f.run(t, "submit", "x", "--id", "newest")
	if stdout, stderr := f.run(t, "status", "--last"); !strings.Contains(stdout, "id         newest\n") || stderr != "run newest\n" {
		t.Errorf("%q, told %q", stdout, stderr)
	}
	if stdout, _ := f.run(t, "cancel", "--last"); stdout != "run newest is cancelled\n" {
		t.Error(stdout)
	}
	f.fails(t, "no runs of tenant empty: submit a task with `longshore submit --tenant empty`", "status", "--last", "--tenant", "empty")
	_, _, err := executeWith(t, f.connect, "", "status", "--last", oneID)
	if _, is := errors.AsType[*render.UsageError](err); !is {
		t.Errorf("both: %v", err)
	}
}

func TestStatusIsACard(t *testing.T) {
	f := withRuns(t)
	out, _ := f.run(t, "status", "order-12")
	for _, want := range []string{
		"status     failed\n", "error      too dear (budget)\n", "agent      default\n", `input      Say\x1b[2J hello.` + "\n", "steps      1\n",
		"files      a.md, b.md\n", "next       longshore retry order-12\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	if wide, _ := f.run(t, "status", "order-12", "-o", "wide"); !strings.Contains(wide, "priority   normal\n") || !strings.Contains(wide, "calls      1 call of models") {
		t.Error(wide)
	}
	var card struct {
		Status messages.Status      `json:"status"`
		Run    control.RunSummary   `json:"run"`
		Result messages.AgentResult `json:"result"`
	}
	if out, _ := f.run(t, "status", "order-12", "-o", "json"); json.Unmarshal([]byte(out), &card) != nil || card.Status != messages.StatusFailed ||
		card.Run.Agent != messages.DefaultAgent || len(card.Result.Outputs) != 2 {
		t.Error(out)
	}
}

// Without an index the card has what the log says.
func TestStatusWithoutAnIndex(t *testing.T) {
	f := newFleet(t)
	f.work(t, dispatcher.Run("done"), messages.AgentResult{Success: true, Status: messages.StatusCompleted})
	if out, _ := f.run(t, "status", "done"); !strings.Contains(out, "agent      default\n") || !strings.Contains(out, "next       longshore result done\n") {
		t.Error(out)
	}
}

func TestRetry(t *testing.T) {
	f := withRuns(t)
	f.fails(t, "run "+oneID+" has not ended: cancel it first with `longshore cancel "+oneID+"`", "retry", oneID)
	f.work(t, dispatcher.Run("done"), messages.AgentResult{Success: true, Status: messages.StatusCompleted})
	f.fails(t, "run done completed: use --force to submit its task again anyway", "retry", "done")
	f.run(t, "retry", "done", "--force")
	stdout, stderr := f.run(t, "retry", "order-12", "--id", "again")
	if stdout != "again\n" || stderr != "watch it with `longshore watch again`\n" {
		t.Errorf("%q, told %q", stdout, stderr)
	}
	if out, _ := f.run(t, "status", "again"); !strings.Contains(out, "status     queued\n") || !strings.Contains(out, `input      Say\x1b[2J hello.`+"\n") {
		t.Error(out)
	}
}

func TestInbox(t *testing.T) {
	f := indexed(t)
	if stdout, stderr := f.run(t, "inbox"); stdout != "" || stderr != "no run of tenant default waits for a person\n" {
		t.Errorf("%q, told %q", stdout, stderr)
	}
	f.park(t, "curious", &record.Parked{Reason: queue.ParkAnswer, Call: "c3", Question: "Which berth?"})
	f.park(t, "careful", wrecks("c1"))
	stdout, _ := f.run(t, "inbox")
	if !strings.Contains(stdout, "Which berth?") || !strings.Contains(stdout, "longshore answer curious TEXT\n") || !strings.Contains(stdout, "longshore approve careful c1\n") || !strings.HasPrefix(stdout, "KIND") {
		t.Error(stdout)
	}
	var letter struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	}
	stdout, _ = f.run(t, "inbox", "-o", "json")
	if first, _, _ := strings.Cut(stdout, "\n"); json.Unmarshal([]byte(first), &letter) != nil || letter.Kind != "answer" || letter.ID != "curious" {
		t.Error(stdout)
	}
	if out, _ := f.run(t, "answer", "curious", "Berth 4."); !strings.HasPrefix(out, "answered: ") {
		t.Error(out)
	}
}
