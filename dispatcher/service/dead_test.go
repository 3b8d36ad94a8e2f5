package service_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
)

// deadLetter puts a letter of a run into the dead letters and returns its number.
func (o *office) deadLetter(tenant, run, agent, body string, code messages.Code) uint64 {
	o.t.Helper()
	ref := messages.Ref{Tenant: tenant, Run: run}
	err := taskqueue.New(o.bus).DeadLetter(o.t.Context(), ref, agent, messages.Dead{
		Error: messages.RunError{Code: code, Message: "it cannot be worked"}, Subject: ref.TaskSubject(messages.PriorityHigh),
		Task: []byte(body), Attempts: 5, Time: time.Now().UTC(),
	})
	if err != nil {
		o.t.Fatal(err)
	}
	var newest uint64
	for d, err := range deadletters.New(o.bus).List(o.t.Context(), tenant, 0, nil) {
		if err != nil {
			o.t.Fatal(err)
		}
		newest = d.Seq
	}
	return newest
}

func (o *office) queuedTask(run messages.Ref) *messages.Task {
	o.t.Helper()
	q, ok, err := taskqueue.New(o.bus).Queued(o.t.Context(), run)
	if err != nil || !ok {
		o.t.Fatalf("%s is not queued: %v", run, err)
	}
	p, _, _ := messages.ParseTaskSubject(q.Subject)
	task, err := messages.DecodeTaskFor(run, p, q.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return task
}

func one(seq uint64) control.DeadRequest { return control.DeadRequest{Seq: seq} }

func TestDeadLettersAreListedByWhatTheyAre(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	ctx := t.Context()
	a := o.deadLetter("default", "a", "writer", `{"input":"a"}`, messages.CodePoison)
	b := o.deadLetter("default", "b", "reader", `{"input":`, messages.CodeInvalidInput)
	other := o.deadLetter("acme", "c", "writer", `{"input":"c"}`, messages.CodePoison)
	if err := deadletters.New(o.bus).PutRaw(ctx, "tasks.normal.>", messages.Dead{Subject: "tasks.normal.>", Task: []byte{0xff}, Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	late := time.Now().Add(time.Hour)
	for name, tt := range map[string]struct {
		filter control.DeadFilter
		want   []string // runs
	}{
		"all":           {control.DeadFilter{}, []string{"a", "b"}},
		"agent":         {control.DeadFilter{Agent: "writer"}, []string{"a"}},
		"code":          {control.DeadFilter{Code: messages.CodeInvalidInput}, []string{"b"}},
		"kind":          {control.DeadFilter{Kind: control.DeadWebhook}, nil},
		"since":         {control.DeadFilter{Since: &late}, nil},
		"tenant":        {control.DeadFilter{Tenant: "acme"}, []string{"c"}},
		"of no tenant":  {control.DeadFilter{Unaddressed: true}, []string{""}},
		"of no letter":  {control.DeadFilter{Tenant: "umbrella"}, nil},
		"another agent": {control.DeadFilter{Tenant: "acme", Agent: "reader"}, nil},
	} {
		list, err := o.client.DeadLetters().List(ctx, control.DeadListRequest{DeadFilter: tt.filter})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range list.Letters {
			got = append(got, l.Run)
			if l.Task != nil || l.Raw != nil {
				t.Errorf("%s: a list shows bodies", name)
			}
		}
		if strings.Join(got, " ") != strings.Join(tt.want, " ") || len(got) != len(tt.want) || list.Next != 0 {
			t.Errorf("%s: %q, next %d", name, got, list.Next)
		}
	}
	page, err := o.client.DeadLetters().List(ctx, control.DeadListRequest{Limit: 1})
	if err != nil || len(page.Letters) != 1 || page.Letters[0].Seq != a || page.Next != a {
		t.Errorf("%+v %v", page, err)
	}
	page, err = o.client.DeadLetters().List(ctx, control.DeadListRequest{Limit: 1, After: page.Next})
	if err != nil || len(page.Letters) != 1 || page.Letters[0].Seq != b || page.Next != 0 {
		t.Errorf("%+v %v", page, err)
	}
	for name, tt := range map[string]struct {
		req   control.DeadListRequest
		field string
	}{
		"the tenant of none": {control.DeadListRequest{DeadFilter: control.DeadFilter{Tenant: "_"}}, "tenant"},
		"a filter of others": {control.DeadListRequest{DeadFilter: control.DeadFilter{Tenant: "*"}}, "tenant"},
		"both":               {control.DeadListRequest{DeadFilter: control.DeadFilter{Tenant: "acme", Unaddressed: true}}, "unaddressed"},
		"kind":               {control.DeadListRequest{DeadFilter: control.DeadFilter{Kind: "x"}}, "kind"},
		"agent":              {control.DeadListRequest{DeadFilter: control.DeadFilter{Agent: ">"}}, "agent"},
		"limit":              {control.DeadListRequest{Limit: 101}, "limit"},
	} {
		if _, err := o.client.DeadLetters().List(ctx, tt.req); !refuses(err, tt.field, "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, err := o.client.DeadLetters().Get(ctx, one(a))
	if err != nil || string(l.Task) != `{"input":"a"}` || l.Agent != "writer" || l.Error.Code != messages.CodePoison || l.Attempts != 5 {
		t.Errorf("%+v %v", l, err)
	}
	if l, err = o.client.DeadLetters().Get(ctx, one(b)); err != nil || string(l.Raw) != `{"input":` {
		t.Errorf("%+v %v", l, err)
	}
	for _, seq := range []uint64{other, other + 1, 999} { // another tenant's, no tenant's, none
		if _, err := o.client.DeadLetters().Get(ctx, one(seq)); !errors.Is(err, dispatcher.ErrNoLetter) {
			t.Errorf("letter %d: %v", seq, err)
		}
		if _, err := o.client.DeadLetters().Purge(ctx, one(seq)); !errors.Is(err, dispatcher.ErrNoLetter) {
			t.Errorf("letter %d: %v", seq, err)
		}
		if _, err := o.client.DeadLetters().Redrive(ctx, control.DeadRedrive{DeadRequest: one(seq)}); !errors.Is(err, dispatcher.ErrNoLetter) {
			t.Errorf("letter %d: %v", seq, err)
		}
	}
}

func TestARedrivenTaskIsANewRun(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	ctx := t.Context()
	body := `{"id":"a","input":"go","labels":{"team":"core"}}`
	seq := o.deadLetter("default", "a", "default", body, messages.CodePoison)
	done, err := o.client.DeadLetters().Redrive(ctx, control.DeadRedrive{DeadRequest: one(seq)})
	if err != nil || done.ID == "a" || done.ID == "" || done.Duplicate {
		t.Fatalf("%+v %v", done, err)
	}
	task := o.queuedTask(dispatcher.Run(done.ID))
	if task.Labels[control.LabelRedriven] != "a" || task.Labels["team"] != "core" || task.Priority != messages.PriorityHigh {
		t.Errorf("%+v", task)
	}
	o.letters(0)
	if _, err := o.client.DeadLetters().Redrive(ctx, control.DeadRedrive{DeadRequest: one(seq)}); !errors.Is(err, dispatcher.ErrNoLetter) {
		t.Errorf("a letter that is gone: %v", err)
	}

	// A dispatcher that was killed between the task and the letter left both; the letter comes again, and no second run.
	again := o.deadLetter("default", "a", "default", body, messages.CodePoison)
	second, err := o.client.DeadLetters().Redrive(ctx, control.DeadRedrive{DeadRequest: one(again)})
	if err != nil || second.ID != done.ID || !second.Duplicate {
		t.Errorf("%+v %v", second, err)
	}
	o.letters(0)

	// A task that another client wrote is not taken for the same.
	again = o.deadLetter("default", "a", "default", body, messages.CodePoison)
	edited := control.DeadRedrive{DeadRequest: one(again), Task: json.RawMessage(`{"id":"a","input":"go on"}`)}
	if _, err := o.client.DeadLetters().Redrive(ctx, edited); !errors.Is(err, dispatcher.ErrConflict) {
		t.Errorf("another task: %v", err)
	}
	o.letters(1)
	edited.NewID = "mine"
	if done, err := o.client.DeadLetters().Redrive(ctx, edited); err != nil || done.ID != "mine" {
		t.Errorf("%+v %v", done, err)
	}
	if task := o.queuedTask(dispatcher.Run("mine")); task.Input.Text() != "go on" {
		t.Errorf("%+v", task)
	}
	o.letters(0)
}

// What is refused leaves the letter where it is.
func TestARedriveThatIsRefusedKeepsTheLetter(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	ctx := t.Context()
	if err := errors.Join(second(o.client.Submit(ctx, messages.Task{ID: "taken", Input: messages.TextInput("x")}))); err != nil {
		t.Fatal(err)
	}
	seq := o.deadLetter("default", "a", "default", `{"input":`, messages.CodeInvalidInput)
	for name, tt := range map[string]struct {
		task, newID string
		field       string // empty: a conflict
	}{
		"as it is":        {"", "", "input"}, // which is cut
		"no input":        {`{}`, "", "input"},
		"another tenant":  {`{"input":"x","tenant":"acme"}`, "", "tenant"},
		"unknown agent":   {`{"input":"x","agent":"unknown"}`, "", "agent"},
		"a late deadline": {`{"input":"x","deadline":"2020-01-01T00:00:00Z"}`, "", "deadline"},
		"a wrong id":      {`{"input":"x"}`, "a.b", "id"},
		"two ids":         {`{"input":"x","id":"b"}`, "c", "newId"},
		"a webhook":       {`{"input":"x","webhook":{"url":"http://a/"}}`, "", "webhook.url"},
		"a taken id":      {`{"input":"y","id":"taken"}`, "", ""},
	} {
		req := control.DeadRedrive{DeadRequest: one(seq), NewID: tt.newID}
		if tt.task != "" {
			req.Task = json.RawMessage(tt.task)
		}
		_, err := o.client.DeadLetters().Redrive(ctx, req)
		switch {
		case tt.field == "" && !errors.Is(err, dispatcher.ErrConflict),
			tt.field == "agent" && !errors.Is(err, dispatcher.ErrUnknownAgent),
			tt.field != "" && tt.field != "agent" && !refuses(err, tt.field, ""):
			t.Errorf("%s: %v", name, err)
		}
		o.letters(1)
	}
}

func second[A any](_ A, err error) error { return err }

// A message that never named a run keeps the id that it has, once it is repaired.
func TestAMessageThatNamedNoRunIsRepaired(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	ctx := t.Context()
	if err := deadletters.New(o.bus).PutRaw(ctx, "tasks.urgent.x", messages.Dead{Subject: "tasks.urgent.x", Task: []byte(`{"id":"own","tenant":"acme"}`), Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	list, err := o.client.DeadLetters().List(ctx, control.DeadListRequest{DeadFilter: control.DeadFilter{Unaddressed: true}})
	if err != nil || len(list.Letters) != 1 || list.Letters[0].Kind != control.DeadMessage {
		t.Fatalf("%+v %v", list, err)
	}
	req := control.DeadRedrive{DeadRequest: control.DeadRequest{Seq: list.Letters[0].Seq, Unaddressed: true}}
	if _, err := o.client.DeadLetters().Redrive(ctx, req); !refuses(err, "input", "") {
		t.Errorf("not repaired: %v", err)
	}
	req.Task = json.RawMessage(`{"id":"own","tenant":"acme","input":"x"}`)
	done, err := o.client.DeadLetters().Redrive(ctx, req)
	if err != nil || done.Tenant != "acme" || done.ID != "own" {
		t.Fatalf("%+v %v", done, err)
	}
	o.queuedTask(messages.Ref{Tenant: "acme", Run: "own"})
}

func TestManyLettersAtOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	ctx := t.Context()
	const many = control.MaxDeadBulk + 5
	for i := range many {
		run := messages.Ref{Tenant: "default", Run: "r-" + string(rune('A'+i/26)) + string(rune('A'+i%26))}
		body := `{"input":"x"}`
		if i == 0 {
			body = `{}`
		}
		err := taskqueue.New(o.bus).DeadLetter(ctx, run, "writer", messages.Dead{Subject: run.TaskSubject(messages.PriorityLow), Task: []byte(body), Time: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
	}
	o.deadLetter("default", "other", "reader", `{"input":"x"}`, messages.CodePoison)
	req := control.DeadListRequest{DeadFilter: control.DeadFilter{Agent: "writer"}}
	redriven, failed := 0, 0
	for {
		out, err := o.client.DeadLetters().RedriveAll(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		redriven, failed = redriven+len(out.Redriven), failed+len(out.Failed)
		for _, f := range out.Failed {
			if f.Error.Field != "input" {
				t.Errorf("%+v", f)
			}
		}
		if req.After = out.Next; req.After == 0 {
			break
		}
	}
	if redriven != many-1 || failed != 1 {
		t.Errorf("%d sent again, %d not", redriven, failed)
	}
	if l := o.letters(2); l[0].Agent != "writer" || l[1].Agent != "reader" {
		t.Errorf("%+v", l)
	}
	out, err := o.client.DeadLetters().PurgeAll(ctx, control.DeadListRequest{DeadFilter: control.DeadFilter{Agent: "writer"}})
	if err != nil || len(out.Purged) != 1 || out.Next != 0 {
		t.Errorf("%+v %v", out, err)
	}
	l := o.letters(1)[0]
	if gone, err := o.client.DeadLetters().Purge(ctx, one(l.Seq)); err != nil || gone.Run != "other" {
		t.Errorf("%+v %v", gone, err)
	}
	if n := o.count(bus.StreamDead); n != 0 {
		t.Errorf("%d letters are left", n)
	}
}
