package browser_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

const checkButton = "Check by replay"

// plant stores a run whose model said one thing and that ended with another, which no planner decides.
func (h *hall) plant(id, said, result string) {
	h.Helper()
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		h.Fatal(err)
	}
	defer nc.Close()
	b, err := bus.Open(h.Context(), nc, bus.Config{})
	if err != nil {
		h.Fatal(err)
	}
	logs := runlogs.New(b, runlogs.Config{})
	k := &runlog.Controller{Log: logs, Queue: taskqueue.New(b), Events: logs, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: id}
	task := messages.Task{ID: id, Tenant: run.Tenant, Input: messages.TextInput("One?")}
	task.SetDefaults()
	_, err = k.Begin(
		h.Context(), run,
		&record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: time.Now()}, &record.Claimed{Claim: "k", Worker: "w", Ticket: 1}, &record.StepStarted{Step: 1},
		&record.ModelReplied{Step: 1, Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent(said)}, Stop: messages.StopEnd},
		&record.StepEnded{Step: 1, Status: messages.StepCompleted},
		&record.Finished{Result: messages.AgentResult{ID: id, Status: messages.StatusCompleted, Success: true, Result: result, Steps: 1}},
	)
	if err != nil {
		h.Fatal(err)
	}
	if err := k.Settle(h.Context(), run); err != nil {
		h.Fatal(err)
	}
}

// openPlain has no encryption, so that a test can store a log.
func openPlain(t *testing.T) *hall {
	t.Helper()
	return openWith(t, settings.Dev{
		Serving: settings.Serving{Access: settings.Access{Auth: settings.AuthOff}}, Encryption: settings.Encryption{Encryption: settings.EncryptionOff},
	}, scripted.New(&scripted.Script{}))
}

// A viewer checks a run by replay, which is decided the same today.
func TestAViewerChecksARun(t *testing.T) {
	h := open(t, settings.AuthOn, script)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := client.Keys().Create(t.Context(), dispatcher.KeySpec{Tenant: messages.DefaultTenant, Roles: []control.AccessRole{control.RoleViewer}})
	if err != nil {
		t.Fatal(err)
	}
	run := dispatcher.Run("r")
	if _, err := client.Submit(t.Context(), messages.Task{ID: run.Run, Input: messages.TextInput("write")}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Wait(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	h.shows("Sign in to Longshore")
	h.do(chromedp.SendKeys("input[name=key]", key), chromedp.Click(button("Sign in")))
	h.shows("Newest runs")
	h.do(chromedp.Navigate(h.url + "/runs/r"))
	h.shows("Done: see haiku.txt")
	h.do(chromedp.Click(button(checkButton)))
	h.shows("The same 6 decisions.")
	h.shows("version 0.0.0")
	h.do(chromedp.Navigate(h.url+"/runs"), chromedp.Click(`//a[normalize-space()="r"]`))
	h.shows("Done: see haiku.txt")
	if eval[bool](h, `document.querySelector(".checked") !== null`) {
		t.Error("the check is there still after the run was left")
	}
}

// The first decision that would be another one is shown by keyboard alone: where it is, and both texts with what differs marked.
func TestADifferenceByKeyboard(t *testing.T) {
	h := openPlain(t)
	h.plant("r", "grey harbour morning", "grey harbour evening")
	k := h.keyboard(newKinds())
	k.visit("/runs/r")
	for _, s := range []stroke{sees("grey harbour evening"), press(checkButton), sees("Different at step 1"), sees("Planned today")} {
		s(k)
	}
	marks := `[...document.querySelectorAll(".checked mark")].map((m) => m.className + " " + m.textContent).join()`
	if got := eval[string](h, marks); got != "removed evening,added morning" {
		t.Errorf("marked are %s", got)
	}
	h.picture("check")
	for _, width := range []int64{390, 1280} {
		h.look("light", width, 1)
		h.fits("a difference", width)
		h.accessible("a difference", axe(t))
	}
	press("Close the check")(k)
	gone("Planned today")(k)
	if at := k.focus(); !strings.HasPrefix(at, "<") || strings.HasPrefix(at, "<body") {
		t.Errorf("the focus is at %s", at)
	}
}

// A check says that it is on its way, why it is refused, and is made again; one that was closed shows nothing when its answer comes.
func TestACheckThatIsRefused(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"r","input":"hi"}`, true)
	answer, left := make(chan struct{}), make(chan struct{}, 1)
	answers := func() {
		h.Helper()
		select {
		case answer <- struct{}{}:
		case <-time.After(patience):
			h.Fatal("no check was asked for")
		}
	}
	var refuses atomic.Bool
	refuses.Store(true)
	h.before(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/check") {
			return false
		}
		select {
		case <-answer:
		case <-r.Context().Done():
			left <- struct{}{}
			return true
		}
		if refuses.Load() {
			refuse(w, http.StatusGatewayTimeout)
			return true
		}
		return false
	})
	h.do(chromedp.Navigate(h.url + "/runs/r"))
	h.shows("hello")
	h.do(chromedp.Click(button(checkButton)))
	h.shows("Planning every decision again")
	answers()
	h.shows(sentence)
	h.do(chromedp.Click(button("Try again")))
	h.shows("Planning every decision again")
	h.do(chromedp.Click(button("Close the check")), chromedp.Poll[chromedp.Void](`!document.querySelector(".checked")`, chromedp.WithPollingTimeout(patience)))
	select {
	case <-left:
	case <-time.After(patience):
		t.Fatal("the request of a check that was closed was not given up")
	}
	refuses.Store(false)
	h.do(chromedp.Click(button(checkButton)))
	answers()
	h.shows("The same 3 decisions.")
}

// What a run holds is text in a check too, up to where it is shortened.
func TestAHostileDifference(t *testing.T) {
	const shown = 180 // bytes that a check shows of a text, at least
	var runs []string
	for _, text := range hostile() {
		text = strings.ToValidUTF8(text[:min(len(text), shown)], "")
		if last := len(runs) - 1; last >= 0 && len(runs[last])+len(text) < shown {
			runs[last] += "\n" + text
		} else {
			runs = append(runs, text)
		}
	}
	h := openPlain(t)
	for i, text := range runs {
		id := "h" + strconv.Itoa(i)
		h.plant(id, text, text+" ends")
		h.do(chromedp.Navigate(h.url+"/runs/"+id), chromedp.Click(button(checkButton)))
		h.shows("Different at step 1")
		h.harmless(id)
		h.look("light", 1280, 1)
	}
}
