package cli

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	for text, want := range map[string]struct {
		d     time.Duration
		shown string
	}{
		"90m":    {90 * time.Minute, "1h30m0s"},
		"24h":    {day, "24h"},
		"7d":     {7 * day, "168h"},
		"36500d": {36500 * day, "876000h"},
		"0s":     {0, ""},
		"0d":     {0, ""},
		"-1h":    {-time.Hour, "-1h"}, // the command refuses it
	} {
		var a ago
		if err := a.Set(text); err != nil || time.Duration(a) != want.d || a.String() != want.shown {
			t.Errorf("%s: %v %s %v", text, time.Duration(a), a.String(), err)
		}
	}
	for _, text := range []string{"", "d", "7", "1.5d", "-1d", "36501d", "999999999999d", "yesterday", "7dd"} {
		a := ago(day)
		if err := a.Set(text); err == nil || time.Duration(a) != day {
			t.Errorf("%q: %v %v", text, time.Duration(a), err)
		}
	}
}
