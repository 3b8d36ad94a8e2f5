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
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// prior is the head of a run that ticket 7 has claimed twice, after some parks.
func prior(p record.Phase) record.Head {
	return record.Head{
		ID: "h", Version: 1, Time: noon, Kinds: []record.Kind{record.KindClaimed}, Phase: p, Claim: "k", Ticket: 7,
		ClaimSeq: 40, ParkSeq: 30, Attempt: 2, Waits: "approval", FirstEvent: 5, Events: 2, EventsThrough: 20,
	}
}

// TestFollow has one line for each phase and record: what the record does to a head of that phase.
func TestFollow(t *testing.T) {
	t.Parallel()
	phases := []record.Phase{"", record.PhaseActive, record.PhaseParked, record.PhaseReady, record.PhaseFinished}
	keep := func(*record.Head) {}
	attempt0 := func(h *record.Head) { h.Attempt = 0 }
	ready := func(h *record.Head) { h.Phase = record.PhaseReady }
	only := func(p record.Phase, change func(*record.Head)) func(*record.Head) {
		return func(h *record.Head) {
			if h.Phase == p {
				change(h)
			}
		}
	}
	for name, tc := range map[string]struct {
		record record.Record
		events int
		change func(*record.Head) // to every phase but finished
	}{
		"started":       {&record.Started{}, 2, keep},
		"step started":  {&record.StepStarted{Step: 1}, 1, keep},
		"model replied": {&record.ModelReplied{}, 1, attempt0},
		"model failed":  {&record.ModelFailed{}, 1, attempt0},
		"tool started":  {&record.ToolStarted{}, 1, keep},
		"tool returned": {&record.ToolReturned{}, 1, attempt0},
		"step ended":    {&record.StepEnded{}, 1, keep},
		"planned":       {&record.Planned{}, 1, keep},
		"claimed": {&record.Claimed{Claim: "k2", Ticket: 9}, 0, func(h *record.Head) {
			h.Phase, h.Claim, h.Ticket, h.ClaimSeq, h.Attempt, h.Waits = record.PhaseActive, "k2", 9, 0, 3, ""
		}},
		"claimed to resume": {&record.Claimed{Claim: "k2", Ticket: 9, Resumes: "approval"}, 1, func(h *record.Head) {
			h.Phase, h.Claim, h.Ticket, h.ClaimSeq, h.Attempt, h.Waits = record.PhaseActive, "k2", 9, 0, 3, ""
		}},
		"parked": {&record.Parked{Reason: "answer"}, 1, func(h *record.Head) {
			h.Phase, h.ParkSeq, h.Attempt, h.Waits = record.PhaseParked, 0, 0, "answer"
		}},
		"released":              {&record.Released{}, 0, func(h *record.Head) { h.Attempt = 1 }},
		"released but spent":    {&record.Released{Spent: true}, 0, keep},
		"lost":                  {&record.Lost{Ticket: 7}, 0, only(record.PhaseActive, ready)},
		"lost another ticket":   {&record.Lost{Ticket: 8}, 0, keep},
		"answered":              {&record.Answered{Park: 30}, 0, only(record.PhaseParked, ready)},
		"answered another park": {&record.Answered{Park: 29}, 0, keep},
		"expired":               {&record.Expired{Park: 30}, 0, only(record.PhaseParked, ready)},
		"expired another park":  {&record.Expired{Park: 31}, 0, keep},
		"cancel": {&record.CancelRequested{ID: "x"}, 1, func(h *record.Head) {
			h.Cancel = true
			if h.Phase != record.PhaseActive {
				ready(h)
			}
		}},
		"finished": {&record.Finished{}, 2, func(h *record.Head) { h.Phase, h.Waits = record.PhaseFinished, "" }},
	} {
		for _, phase := range phases {
			want := prior(phase)
			want.ID, want.Time, want.EventsThrough = "", time.Time{}, 0
			want.Kinds, want.FirstEvent, want.Events = []record.Kind{tc.record.Kind()}, 7, tc.events
			if phase == record.PhaseFinished {
				want.Events = 0
			} else {
				tc.change(&want)
			}
			before := prior(phase)
			got := record.Follow(before, tc.record)
			noDiff(t, fmt.Sprintf("%s after %q", name, phase), want, got)
			noDiff(t, "the head before", prior(phase), before)
		}
	}
}

func TestFollowCountsAttempts(t *testing.T) {
	t.Parallel()
	claim, release := &record.Claimed{}, &record.Released{}
	for name, tc := range map[string]struct {
		records []record.Record
		want    int
	}{
		"none":                   {[]record.Record{&record.Started{}}, 0},
		"one":                    {[]record.Record{&record.Started{}, claim}, 1},
		"three crashes":          {[]record.Record{claim, claim, claim}, 3},
		"given back":             {[]record.Record{claim, claim, release}, 1},
		"given back and claimed": {[]record.Record{claim, release, claim, release, claim}, 1},
		"spent":                  {[]record.Record{claim, &record.Released{Spent: true}, claim}, 2},
		"a reply is progress":    {[]record.Record{claim, claim, &record.ModelReplied{}, claim}, 1},
		"a failure is progress":  {[]record.Record{claim, &record.ModelFailed{}}, 0},
		"a result is progress":   {[]record.Record{claim, claim, &record.ToolReturned{}}, 0},
		"a park is progress":     {[]record.Record{claim, claim, &record.Parked{}, claim}, 1},
		"but not for a rate":     {[]record.Record{claim, claim, &record.Parked{Reason: queue.ParkRate}, claim}, 2},
		"nor for a worker":       {[]record.Record{claim, claim, &record.Parked{Reason: queue.ParkWorker}, claim}, 2},
		"an intent is none":      {[]record.Record{claim, &record.ToolStarted{}, claim}, 2},
		"a step is none":         {[]record.Record{claim, &record.StepStarted{}, claim}, 2},
		"never below zero":       {[]record.Record{claim, &record.ModelReplied{}, release, claim}, 1},
		"lost is no progress":    {[]record.Record{claim, &record.Lost{}, claim}, 2},
	} {
		var h record.Head
		for _, r := range tc.records {
			h = record.Follow(h, r)
		}
		if h.Attempt != tc.want {
			t.Errorf("%s: attempt %d, want %d", name, h.Attempt, tc.want)
		}
		if together := record.Follow(record.Head{}, tc.records...); together.Attempt != tc.want {
			t.Errorf("%s, in one entry: attempt %d, want %d", name, together.Attempt, tc.want)
		}
	}
}

func TestAtNamesClaimAndPark(t *testing.T) {
	t.Parallel()
	for kind, want := range map[record.Kind]record.Head{
		record.KindClaimed: {ClaimSeq: 50, ParkSeq: 30},
		record.KindParked:  {ClaimSeq: 40, ParkSeq: 50},
		record.KindLost:    {ClaimSeq: 40, ParkSeq: 30},
	} {
		want.Kinds = []record.Kind{record.KindStepEnded, kind}
		e := record.Entry{Head: record.Head{Kinds: want.Kinds, ClaimSeq: 40, ParkSeq: 30}}
		noDiff(t, string(kind), record.Entry{Seq: 50, Head: want}, e.At(50))
		noDiff(t, string(kind)+", again", record.Entry{Seq: 50, Head: want}, e.At(50).At(50))
	}
}

func TestEveryRecordReadsItself(t *testing.T) {
	t.Parallel()
	for what, records := range map[string][]record.Record{"full": fullRecords(), "empty": emptyRecords()} {
		seen := map[record.Kind]bool{}
		for _, r := range records {
			seen[r.Kind()] = true
			b, err := record.EncodeRecords([]record.Record{r})
			if err != nil {
				t.Fatal(err)
			}
			got, err := record.DecodeRecords(b)
			if err != nil {
				t.Fatalf("%s %s: %v", what, r.Kind(), err)
			}
			again, err := record.EncodeRecords(got)
			if err != nil {
				t.Fatal(err)
			}
			noDiff(t, what+" "+string(r.Kind()), string(b), string(again))
			if what == "full" {
				noDiff(t, what+" "+string(r.Kind()), r, got[0])
				wantNoZeroField(t, r)
			}
		}
		if len(seen) != 32 {
			t.Errorf("%s: %d kinds, want 32", what, len(seen))
		}
	}
}

// wantNoZeroField makes sure that "full" stays true when a record grows.
func wantNoZeroField(t *testing.T, r record.Record) {
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
		_, err := record.DecodeRecords([]byte(in))
		wantFieldError(t, in, err)
		noDiff(t, in, error(&want), err)
	}
}

func TestDecodeHead(t *testing.T) {
	t.Parallel()
	full := prior(record.PhaseActive)
	full.Cancel, full.Snapshot, full.Status = true, 3, messages.StatusCompleted
	s, err := record.EncodeHead(&full)
	if err != nil {
		t.Fatal(err)
	}
	got, err := record.DecodeHead(s)
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
		_, err := record.DecodeHead(in)
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
		h, err := record.DecodeHead(in)
		if !errors.Is(err, record.ErrNewerVersion) {
			t.Errorf("%s: got %v, want ErrNewerVersion", name, err)
		}
		if h.Ticket != 7 || h.Phase == "" {
			t.Errorf("%s: what is known was not read: %s", name, cmp.Diff(record.Head{}, h))
		}
	}
}
