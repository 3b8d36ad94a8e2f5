package render

import (
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/control"
)

// At is a time for people, in the zone of now with its offset.
func At(t, now time.Time) string { return t.In(now.Location()).Format(time.RFC3339) }

// Clock is the time of day of a line among others of the same hour, in the zone of now.
func Clock(t, now time.Time) string { return t.In(now.Location()).Format("15:04:05.000") }

// Why is the sentence of a dispatcher about a run, with the dispatcher's times, which are in UTC, in the zone of now.
func Why(y *control.Why, now time.Time) string {
	at := []time.Time{y.Since}
	if y.Until != nil {
		at = append(at, *y.Until)
	}
	if y.Paused != nil {
		at = append(at, y.Paused.At)
	}
	text := y.Text
	for _, t := range at {
		text = strings.ReplaceAll(text, t.UTC().Format(time.RFC3339), At(t, now))
	}
	return text
}
