package bus_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

func TestClock(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	var ahead atomic.Int64
	c := b.NewClock(bus.ClockConfig{Most: 30 * time.Second, Here: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	for _, tc := range []struct {
		ahead time.Duration
		want  string // of Check; empty: nothing is wrong
	}{
		{0, ""},
		{2 * time.Second, ""},
		{time.Hour, " ahead of the NATS server's, more than LONGSHORE_MAX_CLOCK_SKEW (30s)"},
		{-time.Hour, " behind the NATS server's"},
		{0, ""},
	} {
		ahead.Store(int64(tc.ahead))
		asked := time.Now()
		if err := c.Measure(bustest.Context(t)); err != nil {
			t.Fatal(err)
		}
		within := time.Since(asked) + time.Second // embedded: it is this machine's clock
		if d := (c.Ahead() - tc.ahead).Abs(); d > within {
			t.Errorf("%v ahead: measured %v", tc.ahead, c.Ahead())
		}
		if d := time.Since(c.Now()).Abs(); d > within {
			t.Errorf("%v ahead: its time is %v off", tc.ahead, d)
		}
		err := c.Check()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v ahead: %v", tc.ahead, err)
		}
	}
}
