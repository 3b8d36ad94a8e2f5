package openai

import (
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// maxRetryAfter bounds what a server may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long the server wants to be left alone: milliseconds, seconds or a date, or when a limit that
// is used up is reset. 0: it does not say.
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
	var longest time.Duration
	for _, of := range []string{"", "-Requests", "-Tokens"} {
		if h.Get("X-Ratelimit-Remaining"+of) == "0" {
			longest = max(longest, reset(h.Get("X-Ratelimit-Reset"+of), now))
		}
	}
	return longest
}

// Numbers above these are moments, not waits.
const (
	leastUnix      = 1e9
	leastUnixMilli = 1e12
)

// reset reads a wait such as 6m0s, a number of seconds, or a moment in seconds or milliseconds of Unix.
func reset(s string, now time.Time) time.Duration {
	if d, err := time.ParseDuration(s); err == nil {
		return wait(d.Seconds(), time.Second)
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return 0
	case n >= leastUnixMilli:
		return wait(n-float64(now.UnixMilli()), time.Millisecond)
	case n >= leastUnix:
		return wait(n-float64(now.Unix()), time.Second)
	}
	return wait(n, time.Second)
}

var delay = regexp.MustCompile(`"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"`)

// retryDelay reads Gemini's, which is in the body.
func retryDelay(body []byte) time.Duration {
	m := delay.FindSubmatch(body)
	if m == nil {
		return 0
	}
	sec, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0
	}
	return wait(sec, time.Second)
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
