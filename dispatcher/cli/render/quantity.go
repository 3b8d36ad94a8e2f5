package render

import (
	"fmt"
	"strconv"
	"time"
)

// Day is a day of 24 hours.
const Day = 24 * time.Hour

// Span is a duration as a person reads it at a glance.
func Span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < Day:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d/Day), int(d.Hours())%24)
	}
}

// Took is span for what may be over in an instant.
func Took(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	default:
		return Span(d)
	}
}

// maxMillis is far beyond any call, and still a Duration.
const maxMillis = int64(365 * Day / time.Millisecond)

// Millis is Took of milliseconds.
func Millis(n int64) string {
	return Took(time.Duration(min(max(n, 0), maxMillis)) * time.Millisecond)
}

// Tokens is a number of tokens, rounded where that hides nothing.
func Tokens(n int64) string {
	if n < 10_000 {
		return Count(n, "token")
	}
	return fmt.Sprintf("%.1fk tokens", float64(n)/1000)
}

// Count is a number of things, in the singular where it is one.
func Count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}
