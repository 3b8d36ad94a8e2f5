package render

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
		"24h":    {Day, "24h"},
		"7d":     {7 * Day, "168h"},
		"36500d": {36500 * Day, "876000h"},
		"0s":     {0, ""},
		"0d":     {0, ""},
		"-1h":    {-time.Hour, "-1h"}, // the command refuses it
	} {
		var a Ago
		if err := a.Set(text); err != nil || time.Duration(a) != want.d || a.String() != want.shown {
			t.Errorf("%s: %v %s %v", text, time.Duration(a), a.String(), err)
		}
	}
	for _, text := range []string{"", "d", "7", "1.5d", "-1d", "36501d", "999999999999d", "yesterday", "7dd"} {
		a := Ago(Day)
		if err := a.Set(text); err == nil || time.Duration(a) != Day {
			t.Errorf("%q: %v %v", text, time.Duration(a), err)
		}
	}
}
