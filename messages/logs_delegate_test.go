package messages_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

func fullDelegated() *record.Delegated {
	child := agent()
	child.Name, child.Tools = "reader", []string{"read_file"}
	task := messages.Task{
		ID: record.ChildRun(ref, 1, 0), Tenant: ref.Tenant, Agent: "reader", Input: messages.TextInput("Read a.go."), Priority: messages.PriorityNormal,
		Limits: &messages.Limits{MaxSteps: 24, Caps: messages.Caps{Tokens: 500, Cost: new(0.05)}},
	}
	second := task
	second.ID, second.Input = record.ChildRun(ref, 1, 1), messages.TextInput("Read b.go.")
	share := record.Share{Cost: 0.05, Tokens: 500, Runs: 3}
	return &record.Delegated{
		Number: 1, Step: 1, Call: "c1", Need: 2, Any: true, OnFailure: messages.OnChildReturn, At: noon,
		Agents:   []record.Delegatee{{Definition: child, Tools: started().Tools[:1], Withheld: []string{"send_mail"}, Shown: fullShown()}},
		Children: []record.Child{{Agent: 0, Task: task, Share: share}, {Agent: 0, Task: second, Share: share}},
		Used:     []string{"web_search"}, Rules: []record.RulesFor{{Agent: "boss", Policy: &messages.Policy{}}},
	}
}

func fullChildEnded() *record.ChildEnded {
	return &record.ChildEnded{
		Number: 1, Index: 1, Run: record.ChildRun(ref, 1, 1), Status: messages.StatusFailed, Output: "package", Cut: true,
		Error: &messages.RunError{Message: "no answer", Code: messages.CodeModelTimeout}, Cost: new(0.01), Tokens: 120, Runs: 2, Used: []string{"read_file"},
	}
}

func fullParent() *record.Parent {
	return &record.Parent{
		Run: "run-0", Number: 1, Index: 2, Call: "c1", Used: []string{"web_search"}, Rules: fullDelegated().Rules, Needs: fullNeeds(),
	}
}

// delegated is a run that hands two tasks to others, waits for both, and answers; a person's answer does not count.
func delegated(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	s.add(startedWith(func(d *messages.Definition) {
		d.Tools = append(d.Tools, messages.ToolDelegate)
		d.Delegate = &messages.Delegate{Agents: []string{"reader"}}
	}), claimed("k1", "w1", 7), stepStarted(1))
	hand := call("c1", messages.ToolDelegate, `{"tasks":[{"agent":"reader","input":"Read a.go."},{"agent":"reader","input":"Read b.go."}]}`)
	s.add(replied(1, "", hand), &record.ToolStarted{Step: 1, Call: hand})
	park := s.add(fullDelegated(), &record.Parked{Reason: queue.ParkChildren, Call: "c1"})
	s.add(&record.Answered{ID: "x1", Park: park, By: "ann", Content: messages.TextContent("I say so.")})
	s.add(&record.ChildEnded{Number: 1, Run: record.ChildRun(ref, 1, 0), Status: messages.StatusCompleted, Output: "package a", Cost: new(0.02), Tokens: 90})
	s.add(fullChildEnded())
	s.add(&record.Claimed{Claim: "k2", Worker: "w2", Ticket: 20, Delivery: 1, Resumes: queue.ParkChildren})
	s.add(returned(1, hand, `[{"agent":"reader"}]`, ""), stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(replied(2, "One of two."), stepEnded(2, messages.StepCompleted), finished(2, "One of two.", nil))
	return s.entries
}

// A parent is woken by the end that is enough, and by no other; an end counts once.
func TestHeadsOfParents(t *testing.T) {
	t.Parallel()
	end := func(index int, status messages.Status) record.Record {
		return &record.ChildEnded{Number: 1, Index: index, Status: status}
	}
	const done, bad = messages.StatusCompleted, messages.StatusFailed
	for name, tc := range map[string]struct {
		need int
		any  bool
		ends []record.Record
		want record.Phase
	}{
		"two of three, all":      {3, true, []record.Record{end(0, done), end(1, bad)}, record.PhaseParked},
		"all":                    {3, true, []record.Record{end(0, done), end(1, bad), end(2, bad)}, record.PhaseReady},
		"one twice":              {3, true, []record.Record{end(0, done), end(1, bad), end(1, bad)}, record.PhaseParked},
		"all must complete":      {3, false, []record.Record{end(2, bad)}, record.PhaseReady},
		"all complete":           {3, false, []record.Record{end(2, done), end(1, done), end(0, done)}, record.PhaseReady},
		"the first":              {1, false, []record.Record{end(2, done)}, record.PhaseReady},
		"none yet":               {1, false, []record.Record{end(2, bad), end(0, bad)}, record.PhaseParked},
		"none will":              {1, false, []record.Record{end(2, bad), end(0, bad), end(1, bad)}, record.PhaseReady},
		"a quorum":               {2, false, []record.Record{end(2, done), end(0, bad), end(1, done)}, record.PhaseReady},
		"no quorum":              {2, false, []record.Record{end(2, bad), end(0, bad)}, record.PhaseReady},
		"of another delegation":  {1, true, []record.Record{&record.ChildEnded{Number: 2, Status: done}}, record.PhaseParked},
		"no child of it":         {1, false, []record.Record{end(3, done), end(-1, done), end(64, done)}, record.PhaseParked},
		"withdrawn by no parent": {1, false, []record.Record{&record.Withdrawn{Parent: "run-1"}}, record.PhaseParked},
	} {
		d := &record.Delegated{Number: 1, Need: tc.need, Any: tc.any, Children: make([]record.Child, 3)}
		d.Agents = make([]record.Delegatee, 1)
		h := record.Follow(record.Head{}, &record.Started{}, &record.Claimed{}, d, &record.Parked{Reason: queue.ParkChildren})
		for _, r := range tc.ends {
			h = record.Follow(h, r)
		}
		if h.Phase != tc.want {
			t.Errorf("%s: %s, want %s", name, h.Phase, tc.want)
		}
	}
}

// A delegation followed by others is tracked until all of its children have ended; its ends wake no parent.
func TestHeadsOfEarlierDelegations(t *testing.T) {
	t.Parallel()
	named := func(number int) *record.Delegated {
		return &record.Delegated{Number: number, Need: 1, Agents: make([]record.Delegatee, 1), Children: make([]record.Child, 2)}
	}
	end := func(number, index int) record.Record {
		return &record.ChildEnded{Number: number, Index: index, Status: messages.StatusCompleted}
	}
	h := record.Head{}
	for _, r := range []record.Record{
		&record.Started{}, &record.Claimed{}, named(1), end(1, 0), end(1, 1), named(2), end(2, 0), named(3), end(3, 1), named(4),
		&record.Parked{Reason: queue.ParkChildren},
	} {
		h = record.Follow(h, r)
	}
	untold := func() (out []string) {
		for number := range 6 {
			for index := range 2 {
				if !h.ChildTold(number, index) {
					out = append(out, fmt.Sprintf("%d.%d", number, index))
				}
			}
		}
		return out
	}
	if got := untold(); !slices.Equal(got, []string{"2.1", "3.0", "4.0", "4.1"}) || len(h.Earlier) != 2 {
		t.Errorf("not told: %v, of %+v", got, h.Earlier)
	}
	before := h
	h = record.Follow(h, end(2, 1), end(2, 1), end(2, 0), end(1, 0), end(9, 0))
	if got := untold(); !slices.Equal(got, []string{"3.0", "4.0", "4.1"}) || len(h.Earlier) != 1 || h.Phase != record.PhaseParked {
		t.Errorf("not told: %v, of %+v, %s", got, h.Earlier, h.Phase)
	}
	if len(before.Earlier) != 2 || before.Earlier[0].Open() != 1 {
		t.Errorf("the head before was changed: %+v", before.Earlier)
	}
	if h = record.Follow(h, end(4, 0)); h.Phase != record.PhaseReady {
		t.Errorf("the end that is enough leaves it %s", h.Phase)
	}
}

// A child is ready for its ticket from its first record on, and its parent alone withdraws it.
func TestHeadsOfChildren(t *testing.T) {
	t.Parallel()
	h := record.Follow(record.Head{}, &record.Started{Parent: fullParent()})
	if h.Phase != record.PhaseReady || h.Parent == nil || h.Parent.Index != 2 || h.Needs == nil {
		t.Errorf("%+v", h)
	}
	if h := record.Follow(h, &record.Withdrawn{Parent: "run-9"}); h.Cancel {
		t.Error("withdrawn by another run")
	}
	if h := record.Follow(h, &record.Withdrawn{Parent: "run-0"}); !h.Cancel || h.Phase != record.PhaseReady {
		t.Errorf("%+v", h)
	}
}

func TestChildRun(t *testing.T) {
	t.Parallel()
	long := messages.Ref{Tenant: "acme", Run: strings.Repeat("r", 64)}
	seen := map[string]bool{}
	for _, parent := range []messages.Ref{long, {Tenant: "acme", Run: "r"}, {Tenant: "a", Run: "r"}} {
		for number := range 3 {
			for index := range 3 {
				id := record.ChildRun(parent, number, index)
				if seen[id] || len(id) > 64 || (messages.Ref{Tenant: "acme", Run: id}).Check() != nil {
					t.Errorf("%s", id)
				}
				seen[id] = true
			}
		}
	}
}

// What a child may do is what both agents may.
func TestHandDown(t *testing.T) {
	t.Parallel()
	above := messages.Definition{
		Tools:   []string{"a", "b", "c"},
		Grants:  &messages.Grants{Hosts: []string{"*.example.com", "10.1.2.3", "x.org:8443"}, Methods: []string{"GET", "PUT"}, KV: messages.KVSession},
		Approve: &messages.Approve{Always: []string{"a"}, Never: []string{"b"}},
	}
	got, withheld := above.HandDown(messages.Definition{
		Tools: []string{"a", "b", "d"}, ToolRetries: map[string]int{"a": 1, "d": 2},
		Grants: &messages.Grants{
			Hosts:   []string{"api.example.com:443", "example.com", "*.2.3", "X.org", "*.sub.example.com", "evil-example.com"},
			Methods: []string{"GET", "DELETE"}, Credentials: []string{"tracker"}, KV: messages.KVTenant,
		},
		Approve: &messages.Approve{Never: []string{"a", "b", "d"}, OnDeny: messages.OnDenyEnd},
	})
	want := messages.Definition{
		Tools: []string{"a", "b"}, ToolRetries: map[string]int{"a": 1},
		Grants: &messages.Grants{
			Hosts:   []string{"api.example.com:443", "*.sub.example.com", "x.org:8443"},
			Methods: []string{"GET"}, Credentials: []string{"tracker"}, KV: messages.KVSession,
		},
		Approve: &messages.Approve{Always: []string{"a"}, Never: []string{"b"}, OnDeny: messages.OnDenyEnd},
	}
	if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(withheld, []string{"d"}) {
		t.Errorf("withheld %v; %s", withheld, diff)
	}
	none, _ := above.HandDown(messages.Definition{Grants: &messages.Grants{Hosts: []string{}}})
	if none.Grants.Hosts == nil || len(none.Grants.Hosts) != 0 {
		t.Error("a list that leaves nothing leaves something below")
	}
}

// A child reaches the collections of memory that both agents reach, whether by its tools or by itself.
func TestHandDownOfMemory(t *testing.T) {
	t.Parallel()
	recall := func(names ...string) *messages.RecallPolicy { return &messages.RecallPolicy{Collections: names} }
	for name, tc := range map[string]struct{ above, child, want *messages.MemoryPolicy }{
		"no list":       {nil, &messages.MemoryPolicy{Collections: []string{"a"}}, &messages.MemoryPolicy{Collections: []string{"a"}}},
		"the parent's":  {&messages.MemoryPolicy{Collections: []string{"a"}}, nil, &messages.MemoryPolicy{Collections: []string{"a"}}},
		"neither":       {&messages.MemoryPolicy{Recall: recall("a")}, nil, nil},
		"nothing":       {&messages.MemoryPolicy{Collections: []string{}}, nil, &messages.MemoryPolicy{Collections: []string{}}},
		"nothing below": {&messages.MemoryPolicy{Collections: []string{"a"}}, &messages.MemoryPolicy{Collections: []string{}}, &messages.MemoryPolicy{Collections: []string{}}},
		"both": {
			&messages.MemoryPolicy{Collections: []string{"fact*", "x", "y*", "q"}},
			&messages.MemoryPolicy{Collections: []string{"facts", "fac*", "x*", "z", "yes*", "q"}},
			&messages.MemoryPolicy{Collections: []string{"facts", "fact*", "x", "yes*", "q"}},
		},
		"recalls less": {
			&messages.MemoryPolicy{Collections: []string{"a*"}}, &messages.MemoryPolicy{Recall: recall("b", "ab", "a")},
			&messages.MemoryPolicy{Collections: []string{"a*"}, Recall: recall("ab", "a")},
		},
		"recalls and learns nothing": {
			&messages.MemoryPolicy{Collections: []string{"a*"}}, &messages.MemoryPolicy{Recall: recall(), Learn: &messages.LearnPolicy{}},
			&messages.MemoryPolicy{Collections: []string{"a*"}},
		},
		"learns": {
			&messages.MemoryPolicy{Collections: []string{"facts", "ex*"}}, &messages.MemoryPolicy{Recall: recall(), Learn: &messages.LearnPolicy{}},
			&messages.MemoryPolicy{Collections: []string{"facts", "ex*"}, Recall: recall("facts"), Learn: &messages.LearnPolicy{}},
		},
	} {
		was, err := json.Marshal(tc.child)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := (&messages.Definition{Memory: tc.above}).HandDown(messages.Definition{Memory: tc.child})
		if diff := cmp.Diff(tc.want, got.Memory); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if now, err := json.Marshal(tc.child); err != nil || string(now) != string(was) {
			t.Errorf("%s: the child's own definition changed to %s, %v", name, now, err)
		}
	}
}

// Each grant is handed down by a rule of its own: a new one must get one.
func TestHandDownKnowsEveryGrant(t *testing.T) {
	t.Parallel()
	full := reflect.ValueOf(*fullDefinition().Grants)
	for f, value := range full.Fields() {
		if value.IsZero() {
			t.Fatalf("%s is not in the fixture", f.Name)
		}
		var above messages.Grants
		reflect.ValueOf(&above).Elem().FieldByIndex(f.Index).Set(value)
		got, _ := (&messages.Definition{Grants: &above}).HandDown(messages.Definition{Grants: &above})
		if reflect.ValueOf(*got.Grants).FieldByIndex(f.Index).IsZero() {
			t.Errorf("%s is not handed down", f.Name)
		}
		if value.Kind() != reflect.Slice || f.Name == "Writable" { // which leaves nothing when it is absent
			continue
		}
		got, _ = (&messages.Definition{Grants: &above}).HandDown(messages.Definition{})
		if !reflect.DeepEqual(reflect.ValueOf(*got.Grants).FieldByIndex(f.Index).Interface(), value.Interface()) {
			t.Errorf("%s of the parent does not hold below", f.Name)
		}
	}
}

func TestDelegateOfADefinition(t *testing.T) {
	t.Parallel()
	for field, d := range map[string]messages.Delegate{
		"delegate.agents[0]": {Agents: []string{"a.b"}},
		"delegate.agents[1]": {Agents: []string{"a", "a"}},
		"delegate.agents":    {Agents: make([]string, 65)},
		"delegate.depth":     {Agents: []string{"a"}, Depth: 9},
		"delegate.total":     {Agents: []string{"a"}, Total: -1},
	} {
		def := messages.BuiltinAgent()
		def.Delegate = &d
		var bad *messages.FieldError
		if err := def.Validate(); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	var none *messages.Delegate
	if none.Levels() != 0 || none.Runs() != 0 || none.Within(3, 3) != nil {
		t.Error("no delegation allows one")
	}
	d := &messages.Delegate{Agents: []string{"a"}, Depth: 3, Total: 10}
	if got := d.Within(2, 4); got.Depth != 2 || got.Total != 4 || d.Within(0, 4) != nil || d.Within(2, 0) != nil {
		t.Errorf("%+v", got)
	}
}
