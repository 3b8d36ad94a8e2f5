package files

import (
	"strconv"
	"testing"
	"time"
)

// A tenant is not reckoned again at once, and others do not wait for that.
func TestReckonings(t *testing.T) {
	t.Parallel()
	var r reckonings
	now := time.Now()
	for _, tc := range []struct {
		tenant string
		later  time.Duration
		want   bool
	}{{"acme", 0, true}, {"acme", reckonLimit, false}, {"bell", time.Second, true}, {"acme", reckonLimit + reckonEvery, true}} {
		if got := r.begin(tc.tenant, now.Add(tc.later)); got != tc.want {
			t.Errorf("%s after %v: %t", tc.tenant, tc.later, got)
		}
	}
	r.end("acme", false, now)
	if r.begin("acme", now.Add(time.Second)) || !r.begin("acme", now.Add(reckonEvery)) {
		t.Error("a reckoning in vain holds the next back for another time")
	}
	r.end("bell", true, now.Add(time.Second))
	if !r.begin("bell", now.Add(time.Second)) {
		t.Error("a reckoning that made room does not let the next begin")
	}
	for i := range 2 * maxReckoned {
		r.begin(strconv.Itoa(i), now)
	}
	if n := len(r.ended); n > maxReckoned {
		t.Errorf("%d tenants are remembered", n)
	}
}
