package bus

import (
	"testing"
)

func FuzzEvent(f *testing.F) {
	f.Add("events.a.b.step_start", []byte(`{"source":"/tenants/a","subject":"b","type":"longshore.step_start.v1","sequence":"1"}`))
	f.Add(".a.b.step_start", []byte(`{"source":"/tenants/a","subject":"b","type":"longshore.step_start.v1","sequence":"1"}`))
	f.Add("events", []byte("null"))
	f.Add("events.a.b.", []byte(`{"source":"","type":"","sequence":"18446744073709551615"}`))
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		b := &Bus{}
		e, ok := b.Event(Message{Subject: subject, Data: data})
		if ok != (b.skipped.Load() == 0) {
			t.Errorf("got %v and %d skipped", ok, b.skipped.Load())
		}
		if ok && (e.Number() == 0 || "events."+e.Ref().Tenant+"."+e.Ref().Run+"."+e.Name() != subject) {
			t.Errorf("got %+v on %q", e, subject)
		}
	})
}
