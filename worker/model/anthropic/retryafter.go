package anthropic

import (
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds what a server may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long the server wants to be left alone: milliseconds, seconds or a date. 0: it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return wait(ms, time.Millisecond)
	}
	s := h.Get("Retry-After")
	if sec, err := strconv.ParseFloat(s, 64); err == nil {
		return wait(sec, time.Second)
	}
	if at, err := http.ParseTime(s); err == nil {
		return wait(at.Sub(now).Seconds(), time.Second)
	}
	return 0
}

func wait(n float64, unit time.Duration) time.Duration {
	if !(n > 0) { // also not a number
		return 0
	}
	if n >= float64(maxRetryAfter/unit) {
		return maxRetryAfter
	}
	return time.Duration(n * float64(unit))
}
