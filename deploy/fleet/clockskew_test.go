//go:build unix

package fleet_test

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
)

// anHourOff opens a line to NATS on which the server's clock is an hour off: ahead or behind, as the hour is even or odd.
func anHourOff(t *testing.T, natsURL string) string {
	t.Helper()
	return "nats://" + embeddedtest.Relay(t, strings.TrimPrefix(natsURL, "nats://"), func(context.Context) func([]byte) bool {
		return new(wrongTime).change
	})
}

// wrongTime changes the hour of every timestamp in answers of JetStream, without changing their length.
type wrongTime struct {
	at int // how much of before and of the time up to its hour has gone through
}

func (w *wrongTime) change(answer []byte) bool {
	const before = `"ts":"`
	const hour = len(before) + len("2006-01-02T1") // the last digit of it
	for i, c := range answer {
		switch {
		case w.at == hour:
			answer[i], w.at = c^1, 0 // 12 and 13, 22 and 23
		case w.at >= len(before) || c == before[w.at]:
			w.at++
		case c == before[0]:
			w.at = 1
		default:
			w.at = 0
		}
	}
	return true
}

// A worker whose clock is far off is not ready and says why, and so do its metric and the doctor.
func TestClockSkewIsShown(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, nil)
	w.nats = anHourOff(t, w.nats)
	p := w.worker("skewed")
	p.line(`"level":"error"`, "judge the clock", "LONGSHORE_MAX_CLOCK_SKEW")
	off, err := strconv.ParseFloat(metrics(t, p)["longshore_clock_skew_seconds"], 64)
	if err != nil || math.Abs(math.Abs(off)-3600) > 5 {
		t.Errorf("longshore_clock_skew_seconds: %v, %v", off, err)
	}
	resp, err := http.Get("http://" + p.address() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(said), "LONGSHORE_MAX_CLOCK_SKEW") {
		t.Errorf("%s: %s, %v", resp.Status, said, err)
	}
	got := call(t, []string{"NATS_URL=" + w.nats}, "doctor", "--role", "dispatcher", "-o", "json")
	var report struct {
		Checks []doctor.Finding `json:"checks"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	at := slices.IndexFunc(report.Checks, func(f doctor.Finding) bool { return f.Check == "clock" })
	if at < 0 || report.Checks[at].Status != doctor.Fail || !strings.Contains(report.Checks[at].Found, "differ by ") || got.code != 1 {
		t.Errorf("the doctor ended with %d: %+v", got.code, report.Checks)
	}
}
