package messages_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// The id of an occurrence fits into a token however long the name is, and is another one for another second.
func TestOccurrenceIsARun(t *testing.T) {
	t.Parallel()
	ref := control.ScheduleRef{Tenant: "acme", Name: strings.Repeat("n", 48)}
	run := ref.Run(noon)
	if ref.Check() != nil || run.Check() != nil || run == ref.Run(noon.Add(time.Second)) || run != ref.Run(noon.In(time.FixedZone("x", 3600))) {
		t.Errorf("%s", run)
	}
	for _, name := range []string{"", "*", "a.b", ">", strings.Repeat("n", 49), "a b"} {
		if (control.ScheduleRef{Tenant: "acme", Name: name}).Check() == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
}

// The tasks of two occurrences share nothing that one could change for the other.
func TestTaskOfAnOccurrence(t *testing.T) {
	t.Parallel()
	s := fullSchedule()
	s.Task.Labels = map[string]string{"team": "core"}
	one, other := s.TaskAt(noon), s.TaskAt(noon.Add(time.Hour))
	if err := one.Validate(); err != nil {
		t.Error(err)
	}
	if one.ID == other.ID || one.Labels[control.LabelScheduledFor] == other.Labels[control.LabelScheduledFor] || len(s.Task.Labels) != 1 {
		t.Errorf("%+v %+v", one, other)
	}
}

func FuzzSchedule(f *testing.F) {
	full, err := json.Marshal(fullSchedule())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(`{"name":"n","every":"1h","task":{"input":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s control.Schedule
		if strict.Decode(data, &s) != nil {
			return
		}
		s.SetDefaults()
		if s.Validate() != nil {
			return
		}
		if task := s.TaskAt(noon); task.Validate() != nil || task.Ref().Check() != nil {
			t.Errorf("%s makes a task that is not valid", data)
		}
		again, err := json.Marshal(s)
		var read control.Schedule
		if err != nil || strict.Decode(again, &read) != nil || read.Timing() != s.Timing() {
			t.Errorf("%s cannot be read again", again)
		}
	})
}
