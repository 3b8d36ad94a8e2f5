package dispatcher_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

// What no worker has begun is listed as queued, once, and no longer when it has begun.
func TestQueuedRunsAreListed(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	later := time.Now().Add(time.Hour).UTC()
	var middle time.Time
	for _, task := range []messages.Task{
		{ID: "first", Input: messages.TextInput("go"), Labels: map[string]string{"k": "v"}},
		{ID: "later", Input: messages.TextInput("go"), Labels: map[string]string{"k": "v"}, NotBefore: &later},
		{ID: "other", Input: messages.TextInput("go"), Session: "s"},
		{ID: "theirs", Tenant: "acme", Input: messages.TextInput("go")},
	} {
		if _, err := y.client.Submit(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		if task.ID == "first" {
			q, ok, err := taskqueue.New(y.bus).Queued(t.Context(), dispatcher.Run("first"))
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			middle = q.At.Add(time.Nanosecond) // by the clock of the stream
		}
	}
	list := func(f dispatcher.RunFilter) (ids []string) {
		t.Helper()
		l, err := y.client.Runs().List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.Runs {
			ids = append(ids, r.ID+" "+string(r.Status))
			if (r.NotBefore != nil) != (r.ID == "later") || r.Queued == nil || r.Agent != "default" || r.Input != "go" {
				t.Errorf("%+v", r)
			}
		}
		return ids
	}
	queued := []messages.Status{messages.StatusQueued}
	for name, tc := range map[string]struct {
		filter dispatcher.RunFilter
		want   []string
	}{
		"all":            {dispatcher.RunFilter{}, []string{"other queued", "later queued", "first queued"}},
		"by status":      {dispatcher.RunFilter{Statuses: queued}, []string{"other queued", "later queued", "first queued"}},
		"another status": {dispatcher.RunFilter{Statuses: []messages.Status{messages.StatusFailed}}, nil},
		"by label":       {dispatcher.RunFilter{Labels: map[string]string{"k": "v"}}, []string{"later queued", "first queued"}},
		"by session":     {dispatcher.RunFilter{Session: "s"}, []string{"other queued"}},
		"by agent":       {dispatcher.RunFilter{Agent: "unknown"}, nil},
		"until":          {dispatcher.RunFilter{Until: middle}, []string{"first queued"}},
		"since":          {dispatcher.RunFilter{Since: middle}, []string{"other queued", "later queued"}},
		"a page":         {dispatcher.RunFilter{Limit: 1, After: "other"}, []string{"later queued"}},
		"a tenant":       {dispatcher.RunFilter{Tenant: "acme"}, []string{"theirs queued"}},
	} {
		if diff := cmp.Diff(tc.want, list(tc.filter)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	y.worker("")
	if _, err := y.client.Wait(t.Context(), dispatcher.Run("first")); err != nil {
		t.Fatal(err)
	}
	if _, err := y.client.Wait(t.Context(), dispatcher.Run("other")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"later queued"}, list(dispatcher.RunFilter{Statuses: queued})); diff != "" {
		t.Errorf("afterwards: %s", diff)
	}
	if diff := cmp.Diff([]string{"first completed"}, list(dispatcher.RunFilter{Until: middle})); diff != "" {
		t.Errorf("afterwards until: %s", diff)
	}
}
