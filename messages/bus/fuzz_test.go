package bus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

// What the fast way cuts, a decoder cuts in the same way.
func FuzzBundle(f *testing.F) {
	const event = `{"specversion":"1.0","id":"b.1","source":"/tenants/a","type":"longshore.step_start.v1","subject":"b","time":"2026-01-02T03:04:05Z","datacontenttype":"application/json","sequence":"1","data":{}}`
	f.Add([]byte("[" + event + "," + event + "]"))
	f.Add([]byte("[" + event[:len(event)-3] + "[" + event + "," + event + "]}]"))
	f.Add([]byte("[]"))
	f.Add([]byte(`[{"specversion":"},{"specversion":""}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fast, ok := cutWritten(data)
		if !ok {
			_, _ = cutAny(data)
			return
		}
		slow, ok := cutAny(data)
		if diff := cmp.Diff(slow, fast, cmp.AllowUnexported(bundled{}), cmpopts.EquateEmpty()); !ok || diff != "" {
			t.Error(ok, diff)
		}
	})
}
