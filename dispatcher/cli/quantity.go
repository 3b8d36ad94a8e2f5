package cli

import (
	"fmt"
	"strconv"
	"time"
)

const day = 24 * time.Hour

// span is a duration as a person reads it at a glance.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < day:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d/day), int(d.Hours())%24)
	}
}

// took is span for what may be over in an instant.
func took(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	default:
		return span(d)
	}
}

// maxMillis is far beyond any call, and still a Duration.
const maxMillis = int64(365 * day / time.Millisecond)

func millis(n int64) string {
	return took(time.Duration(min(max(n, 0), maxMillis)) * time.Millisecond)
}

func tokens(n int64) string {
	if n < 10_000 {
		return count(n, "token")
	}
	return fmt.Sprintf("%.1fk tokens", float64(n)/1000)
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}
