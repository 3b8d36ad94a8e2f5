package messages_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
)

// prior is the head of a run that ticket 7 has claimed twice, after some parks.
func prior(p messages.Phase) messages.Head {
	return messages.Head{
		ID: "h", Version: 1, Time: noon, Kinds: []messages.Kind{messages.KindClaimed}, Phase: p, Claim: "k", Ticket: 7,
		ClaimSeq: 40, ParkSeq: 30, Attempt: 2, Waits: "approval", FirstEvent: 5, Events: 2, EventsThrough: 20,
	}
}

// TestFollow has one line for each phase and record: what the record does to a head of that phase.
func TestFollow(t *testing.T) {
	t.Parallel()
	phases := []messages.Phase{"", messages.PhaseActive, messages.PhaseParked, messages.PhaseReady, messages.PhaseFinished}
	keep := func(*messages.Head) {}
	attempt0 := func(h *messages.Head) { h.Attempt = 0 }
	ready := func(h *messages.Head) { h.Phase = messages.PhaseReady }
	only := func(p messages.Phase, change func(*messages.Head)) func(*messages.Head) {
		return func(h *messages.Head) {
			if h.Phase == p {
				change(h)
			}
		}
	}
	for name, tc := range map[string]struct {
		record messages.Record
		events int
		change func(*messages.Head) // to every phase but finished
	}{
		"started":       {&messages.Started{}, 2, keep},
		"step started":  {&messages.StepStarted{Step: 1}, 1, keep},
		"model replied": {&messages.ModelReplied{}, 1, attempt0},
		"model failed":  {&messages.ModelFailed{}, 1, attempt0},
		"tool started":  {&messages.ToolStarted{}, 1, keep},
		"tool returned": {&messages.ToolReturned{}, 1, attempt0},
		"step ended":    {&messages.StepEnded{}, 1, keep},
		"planned":       {&messages.Planned{}, 1, keep},
		"claimed": {&messages.Claimed{Claim: "k2", Ticket: 9}, 0, func(h *messages.Head) {
			h.Phase, h.Claim, h.Ticket, h.ClaimSeq, h.Attempt, h.Waits = messages.PhaseActive, "k2", 9, 0, 3, ""
		}},
		"claimed to resume": {&messages.Claimed{Claim: "k2", Ticket: 9, Resumes: "approval"}, 1, func(h *messages.Head) {
			h.Phase, h.Claim, h.Ticket, h.ClaimSeq, h.Attempt, h.Waits = messages.PhaseActive, "k2", 9, 0, 3, ""
		}},
		"parked": {&messages.Parked{Reason: "answer"}, 1, func(h *messages.Head) {
			h.Phase, h.ParkSeq, h.Attempt, h.Waits = messages.PhaseParked, 0, 0, "answer"
		}},
		"released":              {&messages.Released{}, 0, func(h *messages.Head) { h.Attempt = 1 }},
		"released but spent":    {&messages.Released{Spent: true}, 0, keep},
		"lost":                  {&messages.Lost{Ticket: 7}, 0, only(messages.PhaseActive, ready)},
		"lost another ticket":   {&messages.Lost{Ticket: 8}, 0, keep},
		"answered":              {&messages.Answered{Park: 30}, 0, only(messages.PhaseParked, ready)},
		"answered another park": {&messages.Answered{Park: 29}, 0, keep},
		"expired":               {&messages.Expired{Park: 30}, 0, only(messages.PhaseParked, ready)},
		"expired another park":  {&messages.Expired{Park: 31}, 0, keep},
		"cancel": {&messages.CancelRequested{ID: "x"}, 1, func(h *messages.Head) {
			h.Cancel = true
			if h.Phase != messages.PhaseActive {
				ready(h)
			}
		}},
		"finished": {&messages.Finished{}, 2, func(h *messages.Head) { h.Phase, h.Waits = messages.PhaseFinished, "" }},
	} {
		for _, phase := range phases {
			want := prior(phase)
			want.ID, want.Time, want.EventsThrough = "", time.Time{}, 0
			want.Kinds, want.FirstEvent, want.Events = []messages.Kind{tc.record.Kind()}, 7, tc.events
			if phase == messages.PhaseFinished {
				want.Events = 0
			} else {
				tc.change(&want)
			}
			before := prior(phase)
			got := messages.Follow(ref, before, tc.record)
			noDiff(t, fmt.Sprintf("%s after %q", name, phase), want, got)
			noDiff(t, "the head before", prior(phase), before)
		}
	}
}

func TestFollowCountsAttempts(t *testing.T) {
	t.Parallel()
	claim, release := &messages.Claimed{}, &messages.Released{}
	for name, tc := range map[string]struct {
		records []messages.Record
		want    int
	}{
		"none":                   {[]messages.Record{&messages.Started{}}, 0},
		"one":                    {[]messages.Record{&messages.Started{}, claim}, 1},
		"three crashes":          {[]messages.Record{claim, claim, claim}, 3},
		"given back":             {[]messages.Record{claim, claim, release}, 1},
		"given back and claimed": {[]messages.Record{claim, release, claim, release, claim}, 1},
		"spent":                  {[]messages.Record{claim, &messages.Released{Spent: true}, claim}, 2},
		"a reply is progress":    {[]messages.Record{claim, claim, &messages.ModelReplied{}, claim}, 1},
		"a failure is progress":  {[]messages.Record{claim, &messages.ModelFailed{}}, 0},
		"a result is progress":   {[]messages.Record{claim, claim, &messages.ToolReturned{}}, 0},
		"a park is progress":     {[]messages.Record{claim, claim, &messages.Parked{}, claim}, 1},
		"an intent is none":      {[]messages.Record{claim, &messages.ToolStarted{}, claim}, 2},
		"a step is none":         {[]messages.Record{claim, &messages.StepStarted{}, claim}, 2},
		"never below zero":       {[]messages.Record{claim, &messages.ModelReplied{}, release, claim}, 1},
		"lost is no progress":    {[]messages.Record{claim, &messages.Lost{}, claim}, 2},
	} {
		var h messages.Head
		for _, r := range tc.records {
			h = messages.Follow(ref, h, r)
		}
		if h.Attempt != tc.want {
			t.Errorf("%s: attempt %d, want %d", name, h.Attempt, tc.want)
		}
		if together := messages.Follow(ref, messages.Head{}, tc.records...); together.Attempt != tc.want {
			t.Errorf("%s, in one entry: attempt %d, want %d", name, together.Attempt, tc.want)
		}
	}
}

func TestAtNamesClaimAndPark(t *testing.T) {
	t.Parallel()
	for kind, want := range map[messages.Kind]messages.Head{
		messages.KindClaimed: {ClaimSeq: 50, ParkSeq: 30},
		messages.KindParked:  {ClaimSeq: 40, ParkSeq: 50},
		messages.KindLost:    {ClaimSeq: 40, ParkSeq: 30},
	} {
		want.Kinds = []messages.Kind{messages.KindStepEnded, kind}
		e := messages.Entry{Head: messages.Head{Kinds: want.Kinds, ClaimSeq: 40, ParkSeq: 30}}
		noDiff(t, string(kind), messages.Entry{Seq: 50, Head: want}, e.At(50))
		noDiff(t, string(kind)+", again", messages.Entry{Seq: 50, Head: want}, e.At(50).At(50))
	}
}

func TestEveryRecordReadsItself(t *testing.T) {
	t.Parallel()
	for what, records := range map[string][]messages.Record{"full": fullRecords(), "empty": emptyRecords()} {
		seen := map[messages.Kind]bool{}
		for _, r := range records {
			seen[r.Kind()] = true
			b, err := messages.EncodeRecords([]messages.Record{r})
			if err != nil {
				t.Fatal(err)
			}
			got, err := messages.DecodeRecords(b)
			if err != nil {
				t.Fatalf("%s %s: %v", what, r.Kind(), err)
			}
			again, err := messages.EncodeRecords(got)
			if err != nil {
				t.Fatal(err)
			}
			noDiff(t, what+" "+string(r.Kind()), string(b), string(again))
			if what == "full" {
				noDiff(t, what+" "+string(r.Kind()), r, got[0])
				wantNoZeroField(t, r)
			}
		}
		if len(seen) != 25 {
			t.Errorf("%s: %d kinds, want 25", what, len(seen))
		}
	}
}

// wantNoZeroField makes sure that "full" stays true when a record grows.
func wantNoZeroField(t *testing.T, r messages.Record) {
	t.Helper()
	v := reflect.ValueOf(r).Elem()
	for f, value := range v.Fields() {
		if value.IsZero() {
			t.Errorf("%s.%s is not set", v.Type(), f.Name)
		}
	}
}

func TestDecodeRecordsRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]messages.FieldError{
		``:                              {Field: "records", Reason: "is empty"},
		`null`:                          {Field: "records", Reason: "null is not allowed"},
		`{}`:                            {Field: "records", Reason: "must be an array, not an object"},
		`[null]`:                        {Field: "records[0]", Reason: "null is not allowed"},
		`[{}]`:                          {Field: "records[0].kind", Reason: `"" is unknown`},
		`[{"kind":"nope","data":{}}]`:   {Field: "records[0].kind", Reason: `"nope" is unknown`},
		`[{"kind":"lost"}]`:             {Field: "records[0].data", Reason: "is empty"},
		`[{"kind":"lost","data":null}]`: {Field: "records[0].data", Reason: "is empty"},
		`[{"kind":"lost","data":[]}]`:   {Field: "records[0].data", Reason: "must be an object, not an array"},
		`[{"kind":"lost","data":{"ticket":"7"}}]`: {
			Field: "records[0].data.ticket", Reason: "must be an integer, not a string",
		},
		`[{"kind":"lost","data":{}},{"kind":"lost","data":{"a":1}}]`: {
			Field: "records[1].data.a", Reason: "unknown field",
		},
		`[{"kind":"lost","data":{"a":1,"a":1}}]`: {Field: "records[0].data.a", Reason: "given twice"},
		`[{"kind":"lost","data":{},"x":1}]`:      {Field: "records[0].x", Reason: "unknown field"},
	} {
		_, err := messages.DecodeRecords([]byte(in))
		wantFieldError(t, in, err)
		noDiff(t, in, error(&want), err)
	}
}

func TestDecodeHead(t *testing.T) {
	t.Parallel()
	full := prior(messages.PhaseActive)
	full.Cancel, full.Snapshot, full.Status = true, 3, messages.StatusCompleted
	s, err := messages.EncodeHead(&full)
	if err != nil {
		t.Fatal(err)
	}
	got, err := messages.DecodeHead(s)
	if err != nil {
		t.Fatal(err)
	}
	noDiff(t, "head", full, got)
	for name, in := range map[string]string{
		"nothing": ``, "null": `null`, "array": `[]`, "no version": `{"id":"a","kinds":["lost"],"firstEvent":1}`,
		"no id": `{"version":1,"kinds":["lost"],"firstEvent":1}`, "no kinds": `{"id":"a","version":1,"firstEvent":1}`,
		"no number":         `{"id":"a","version":1,"kinds":["lost"]}`,
		"negative events":   `{"id":"a","version":1,"kinds":["lost"],"firstEvent":1,"events":-1}`,
		"negative attempt":  `{"id":"a","version":1,"kinds":["lost"],"firstEvent":1,"attempt":-1}`,
		"a very wrong type": `{"id":` + strings.Repeat("9", 5000) + `}`,
	} {
		_, err := messages.DecodeHead(in)
		wantFieldError(t, name, err)
	}
}

func TestDecodeHeadOfNewerVersion(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"a new field":      `{"id":"a","version":2,"ticket":7,"phase":"active","new":{"a":1}}`,
		"a field retyped":  `{"id":"a","kinds":{"lost":1},"version":2,"ticket":7,"phase":"active"}`,
		"a field taken":    `{"version":2,"ticket":7,"phase":"active"}`,
		"an unknown phase": `{"id":"a","version":2,"ticket":7,"phase":"dreaming"}`,
	} {
		h, err := messages.DecodeHead(in)
		if !errors.Is(err, messages.ErrNewerVersion) {
			t.Errorf("%s: got %v, want ErrNewerVersion", name, err)
		}
		if h.Ticket != 7 || h.Phase == "" {
			t.Errorf("%s: what is known was not read: %s", name, cmp.Diff(messages.Head{}, h))
		}
	}
}
