package record_test

import (
	"encoding/json"
	"testing"
	"testing/quick"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// An envelope written by hand is what encoding/json would write.
func TestHandWrittenEvents(t *testing.T) {
	t.Parallel()
	event := func(id, source, typ, trace string, data string, ms int64) bool {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		e := messages.Event{
			SpecVersion: "1.0", ID: id, Source: source, Type: typ, Traceparent: trace, Sequence: "7", Subject: "a\"b\\c<d>&e",
			Time: time.UnixMilli((ms%1e14 + 1e14) / 2).UTC(), DataContentType: "application/json", Data: raw,
		}
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(record.AppendEvent(nil, &e)) == string(want)
	}
	if err := quick.Check(event, nil); err != nil {
		t.Error(err)
	}
	plain := event("r1.7", "/tenants/acme", "run.longshore.step_end", "", "text", 1)
	empty := event("", "", "", "", "", 0)
	if !plain || !empty {
		t.Errorf("plain %v, empty %v", plain, empty)
	}
}
