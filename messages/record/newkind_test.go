package record

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Moored is a record that Longshore does not have: it parks a run until a ship has left, and says so to the world.
type Moored struct {
	Ship   string `json:"ship"`
	Leaves uint64 `json:"leaves,omitempty"` // the park that it ends
}

const kindMoored Kind = "moored"

// Kind implements Record.
func (*Moored) Kind() Kind { return kindMoored }

// A new kind is a type and a row: how it is read, what it changes in the head of its entry, where it is placed, which events it has and
// what they hide, what a fork keeps and whether it still counts all follow from the row.
func TestANewKindIsARow(t *testing.T) {
	t.Parallel()
	own := maps.Clone(kinds())
	own[kindMoored] = kind[Moored](
		heads(func(r *Moored, h *Head) { h.Phase, h.Waits = PhaseParked, "ship "+r.Ship }),
		placed(func(h *Head, seq uint64) { h.ParkSeq = seq }),
		stands(func(r *Moored, h *Head, _ time.Time) Standing { return settledIf(h.Waits == "ship "+r.Ship) }),
		endsParks(func(r *Moored, park uint64) bool { return r.Leaves == park }),
		hidesText(func(r *Moored) *string { return &r.Ship }),
		keptAs(func(r *Moored) (*Moored, bool) { return &Moored{Ship: r.Ship}, true }),
		resent(), decides(),
		shows("moored", func(r *Moored) any { return map[string]string{"ship": r.Ship} }),
		shows("tide", func(*Moored) any { return nil }).when(func(r *Moored) bool { return r.Leaves > 0 }),
	)
	run := messages.Ref{Tenant: "acme", Run: "harbour"}
	begun := own.follow(Head{}, []Record{&Started{Shown: ShownByDefault()}, &Claimed{Claim: "c"}})
	r := &Moored{Ship: "of ada@example.com", Leaves: 7}
	h := own.follow(begun, []Record{r})
	if h.Phase != PhaseParked || h.Waits != "ship of ada@example.com" || h.Events != 2 || !slices.Equal(h.Kinds, []Kind{kindMoored}) {
		t.Errorf("%+v", h)
	}
	e := Entry{Head: h, Records: []Record{r}}
	own.place(&e, 12)
	if e.Seq != 12 || e.Head.ParkSeq != 12 {
		t.Errorf("%+v", e)
	}
	var names []string
	for event := range own.each(run, &e, func(string) bool { return true }) {
		names = append(names, event.Sequence+" "+event.Name())
		if strings.Contains(string(event.Data), "ada@") {
			t.Errorf("%s shows what it must not", event.Data)
		}
	}
	if !slices.Equal(names, []string{"3 moored", "4 tide"}) {
		t.Errorf("%v", names)
	}
	data, err := EncodeRecords(e.Records)
	if err != nil {
		t.Fatal(err)
	}
	read, err := own.decode(data)
	if err != nil || len(read) != 1 || *read[0].(*Moored) != *r {
		t.Errorf("%s: %v, %v", data, read, err)
	}
	if _, err := DecodeRecords(data); err == nil {
		t.Error("Longshore's own table knows it")
	}
	if kept, ok := own[kindMoored].forked(r); !ok || *kept.(*Moored) != (Moored{Ship: r.Ship}) {
		t.Errorf("a fork keeps %v", kept)
	}
	if first, again := own.standing(r, &begun, time.Now()), own.standing(r, &h, time.Now()); first != Counts || again != Settled {
		t.Errorf("%d, again %d", first, again)
	}
	if of := own[kindMoored]; !of.resent || !of.decides || !of.ends(r, 7) || of.ends(r, 8) {
		t.Errorf("%+v", of)
	}
}
