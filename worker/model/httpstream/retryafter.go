package httpstream

import (
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds what a server may ask for.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads how long a server wants to be left alone: milliseconds, seconds or a date. False: it does not say.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return Wait(ms, time.Millisecond), true
	}
	s := h.Get("Retry-After")
	if sec, err := strconv.ParseFloat(s, 64); err == nil {
		return Wait(sec, time.Second), true
	}
	if at, err := http.ParseTime(s); err == nil {
		return Wait(at.Sub(now).Seconds(), time.Second), true
	}
	return 0, false
}

// Wait is a wait of n units that a server asks for: from 0, also for what is no number, to a day.
func Wait(n float64, unit time.Duration) time.Duration {
	if !(n > 0) { // also not a number
		return 0
	}
	if n >= float64(maxRetryAfter/unit) {
		return maxRetryAfter
	}
	return time.Duration(n * float64(unit))
}
