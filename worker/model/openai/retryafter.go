package openai

import (
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// retryAfter reads how long the server wants to be left alone, also from when a limit that is used up is reset, and from
// the body of a refusal. 0: it does not say.
func retryAfter(h http.Header, body []byte, now time.Time) time.Duration {
	wait, ok := httpstream.RetryAfter(h, now)
	if !ok {
		wait = limitReset(h, now)
	}
	if wait == 0 {
		wait = retryDelay(body)
	}
	return wait
}

// limitReset is when the last of the limits that are used up is reset.
func limitReset(h http.Header, now time.Time) time.Duration {
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
		return httpstream.Wait(d.Seconds(), time.Second)
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return 0
	case n >= leastUnixMilli:
		return httpstream.Wait(n-float64(now.UnixMilli()), time.Millisecond)
	case n >= leastUnix:
		return httpstream.Wait(n-float64(now.Unix()), time.Second)
	}
	return httpstream.Wait(n, time.Second)
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
	return httpstream.Wait(sec, time.Second)
}
