package fleet_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/messages/memory"
)

const busySessionScript = `scenes:
  - repeat: true
    turns:
      - {calls: [{name: remember, arguments: {text: "Berth 4 is closed."}}]}
      - {calls: [{name: ask_human, arguments: {question: "And berth 5?"}}]}
      - {calls: [{name: remember, arguments: {text: "Berth 5 is open."}}]}
      - {text: done}
`

// A session with a run that has not ended is not deleted, and keeps its memory. Erasing it removes what memory holds of it at once and names the run,
// which may keep more: that goes when the request is made again after the run, or when the session is deleted.
func TestMemoryOfABusySession(t *testing.T) {
	t.Parallel()
	_, client := devFleetOf(t, busySessionScript, "", "scope: session", "")
	if _, err := client.Agents().Apply(t.Context(), messages.Definition{Name: "asker", Tools: []string{"remember", "ask_human"}}, "", nil); err != nil {
		t.Fatal(err)
	}
	kept := func(session string) (texts []string) {
		t.Helper()
		for it, err := range client.Memory().All(t.Context(), memory.ListRequest{Name: "facts", Filter: memory.Filter{Session: session}, Whole: true}) {
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, it.Text)
		}
		return texts
	}
	holds := func(step, session string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, kept(session)); diff != "" {
			t.Errorf("%s: session %s: %s", step, session, diff)
		}
	}
	erased := func(session string) *erasure.Kept {
		t.Helper()
		var all []*erasure.Kept
		for page, err := range client.Data().Erase(t.Context(), erasure.EraseRequest{Scope: erasure.Scope{Session: session}}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, page)
		}
		if len(all) != 1 {
			t.Fatalf("%d pages", len(all))
		}
		return all[0]
	}
	begun := func(session string) messages.Ref {
		t.Helper()
		id, err := client.Submit(t.Context(), messages.Task{Agent: "asker", Session: session, Input: messages.TextInput("Which berths are open?")})
		if err != nil {
			t.Fatal(err)
		}
		run := dispatcher.Run(id)
		eventually(t, "the run waits for an answer", func() bool {
			s, err := client.Status(t.Context(), run)
			return err == nil && s.Status == messages.StatusWaiting
		})
		return run
	}
	ended := func(run messages.Ref) {
		t.Helper()
		if _, err := client.Approvals().Answer(t.Context(), run, control.AnswerRequest{Text: "Ask the pilot."}); err != nil {
			t.Fatal(err)
		}
		if r, err := client.Wait(t.Context(), run); err != nil || !r.Success || len(r.MemoryDeltas) != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	const first, second = "Berth 4 is closed.", "Berth 5 is open."

	run, other := begun("talk"), begun("other")
	if _, err := client.Sessions().Delete(t.Context(), "", "talk"); !errors.Is(err, dispatcher.ErrSessionBusy) {
		t.Errorf("a busy session is deleted: %v", err)
	}
	holds("refused", "talk", first)
	page := erased("talk")
	if diff := cmp.Diff(&erasure.Kept{Runs: []string{}, Busy: []string{run.Run}, Items: 1, Left: page.Left}, page); diff != "" {
		t.Errorf("busy: %s", diff)
	}
	holds("erased", "talk")
	holds("erased", "other", first)
	ended(run)
	holds("ended", "talk", second)
	page = erased("talk")
	want := &erasure.Kept{Runs: []string{run.Run}, Sessions: []string{"talk"}, Items: 1, Cached: page.Cached, Left: page.Left}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("ended: %s", diff)
	}
	holds("erased again", "talk")

	ended(other)
	holds("ended", "other", second, first)
	if _, err := client.Sessions().Delete(t.Context(), "", "other"); err != nil {
		t.Errorf("delete a session: %v", err)
	}
	holds("deleted", "other")
}
