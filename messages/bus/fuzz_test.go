package bus

import (
	"strings"
	"testing"
)

func FuzzBlobRef(f *testing.F) {
	for _, s := range []string{"", "a/1/1", strings.Repeat("ab", 32) + "/2/300000", strings.Repeat("AB", 32) + "/1/1", "*/-1/>", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := parseBlobRef(s)
		if err != nil {
			return
		}
		if ref.size < 1 || ref.size > maxBlob || ref.parts < 1 || ref.parts > ref.size || strings.ContainsAny(ref.hash, ".*> ") {
			t.Errorf("got %+v of %q", ref, s)
		}
		if again, err := parseBlobRef(ref.String()); err != nil || again != ref {
			t.Errorf("got %+v, %v, want %+v", again, err, ref)
		}
	})
}

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
