package messages_test

import (
	"encoding/json"
	"testing"
	"testing/quick"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// What is written by hand is what encoding/json would write.
func TestHandWrittenJSON(t *testing.T) {
	t.Parallel()
	head := func(id, claim, waits string, kinds []string, n [5]uint32, attempt uint16, cancel bool, ms int64) bool {
		h := messages.Head{
			ID: id, Version: 1, Time: time.UnixMilli((ms % 1e14 + 1e14) / 2).UTC(), Phase: messages.PhaseActive, Claim: claim, Waits: waits,
			Ticket: uint64(n[0]), ClaimSeq: uint64(n[1]), ParkSeq: uint64(n[2]), FirstEvent: uint64(n[3]), EventsThrough: uint64(n[4]),
			Attempt: int(attempt), Events: int(attempt % 7), Cancel: cancel, Kinds: []messages.Kind{},
		}
		for _, k := range kinds {
			h.Kinds = append(h.Kinds, messages.Kind(k))
		}
		want, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		got, err := messages.EncodeHead(h)
		return err == nil && got == string(want)
	}
	if err := quick.Check(head, nil); err != nil {
		t.Error(err)
	}
	event := func(id, source, typ, trace string, data string, ms int64) bool {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		e := messages.Event{
			SpecVersion: "1.0", ID: id, Source: source, Type: typ, Traceparent: trace, Sequence: "7", Subject: id,
			Time: time.UnixMilli((ms % 1e14 + 1e14) / 2).UTC(), DataContentType: "application/json", Data: raw,
		}
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(e.AppendJSON(nil)) == string(want)
	}
	if err := quick.Check(event, nil); err != nil {
		t.Error(err)
	}
}
