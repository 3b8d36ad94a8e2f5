package messages_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

func TestValidToken(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]bool{
		"a": true, "A-Z_09": true, "-": true, "_": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "*": false, ">": false, "a.b": false, "a b": false, "a/b": false,
		"ä": false, "a\x00": false, "a\n": false, "\xff": false, "a@b": false, "a[": false, "a`": false, "a{": false, "a:": false,
	} {
		if got := strict.ValidToken(token); got != want {
			t.Errorf("ValidToken(%q) = %v", token, got)
		}
	}
}

func TestParseTaskSubject(t *testing.T) {
	t.Parallel()
	type parsed struct {
		P   messages.Priority
		Ref messages.Ref
		OK  bool
	}
	acme := messages.Ref{Tenant: "acme", Run: "r1"}
	for subject, want := range map[string]parsed{
		acme.TaskSubject(messages.PriorityHigh): {messages.PriorityHigh, acme, true},
		"tasks.normal.acme.r1":                  {messages.PriorityNormal, acme, true},
		"lanes.low.15.acme.r1":                  {messages.PriorityLow, acme, true},
		acme.WakeSubject():                      {"wake", acme, true},
		"lanes.wake.0.acme.r1":                  {"wake", acme, true},
		"tasks.urgent.acme.r1":                  {"urgent", acme, false},
		"tasks..acme.r1":                        {"", acme, false},
		"tasks.High.acme.r1":                    {"High", acme, false},
		"tasks.normal.*.r1":                     {messages.PriorityNormal, messages.Ref{Tenant: "*", Run: "r1"}, false},
		"tasks.normal.acme.>":                   {messages.PriorityNormal, messages.Ref{Tenant: "acme", Run: ">"}, false},
		"tasks.normal.acme.":                    {messages.PriorityNormal, messages.Ref{Tenant: "acme"}, false},
		"tasks.normal..r1":                      {messages.PriorityNormal, messages.Ref{Run: "r1"}, false},
		"tasks.normal.acme.r 1":                 {messages.PriorityNormal, messages.Ref{Tenant: "acme", Run: "r 1"}, false},
		"tasks.normal.acme.r1.x":                {},
		"tasks.normal.acme":                     {},
		"lanes.normal.acme.r1":                  {},
		"lanes.normal.3.acme.r1.x":              {},
		"runs.acme.r1.log":                      {},
		"":                                      {},
		"....":                                  {},
	} {
		var got parsed
		got.P, got.Ref, got.OK = messages.ParseTaskSubject(subject)
		noDiff(t, subject, want, got)
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	r := messages.Ref{Tenant: "acme", Run: "r1"}
	for want, got := range map[string]string{
		"tasks.low.acme.r1":            r.TaskSubject(messages.PriorityLow),
		"tasks.wake.acme.r1":           r.WakeSubject(),
		"lanes.*.*.acme.r1":            r.QueuedFilter(),
		"runs.acme.r1.log":             r.LogSubject(),
		"events.acme.r1.step_end":      r.EventSubject(messages.EventStepEnd),
		"events.acme.r1.>":             r.EventFilter(),
		"nudge.acme.r1":                r.NudgeSubject(),
		"blobs.acme.r1.abc.0":          r.BlobSubject("abc", "0"),
		"dead.acme.reviewer.r1":        r.DeadSubject("reviewer"),
		"acme.r1":                      r.MsgID(),
		"acme/r1":                      r.String(),
		"sched.timer.acme.r1.42.0":     r.TimerSubject(42),
		"sched.net.acme.r1.control-id": r.NetSubject("control-id"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRunRequestRef(t *testing.T) {
	t.Parallel()
	if r, err := (control.RunRequest{ID: "r1"}).Ref(); err != nil || r != (messages.Ref{Tenant: "default", Run: "r1"}) {
		t.Errorf("got %v, %v", r, err)
	}
	_, err := control.RunRequest{Tenant: ">", ID: "r1"}.Ref()
	wantFieldError(t, "tenant", err)
	_, err = control.RunRequest{ID: "*"}.Ref()
	wantFieldError(t, "id", err)
}

// ulidTime reads the time of a ULID, by its specification.
func ulidTime(id string) time.Time {
	var ms int64
	for _, c := range id[:10] {
		ms = ms<<5 | int64(strings.IndexRune("0123456789ABCDEFGHJKMNPQRSTVWXYZ", c))
	}
	return time.UnixMilli(ms)
}

func TestNewID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	last := ""
	for i := range 1000 {
		at := time.UnixMilli(1_500_000_000_000 + int64(i)*1_000_003)
		id := messages.NewID(at)
		if len(id) != 26 || !strict.ValidToken(id) || id[0] > '7' {
			t.Fatalf("%q is not a ULID", id)
		}
		if id <= last {
			t.Errorf("%q is later than %q and sorts before it", id, last)
		}
		if got := ulidTime(id); !got.Equal(at) {
			t.Errorf("%q is of %v, want %v", id, got, at)
		}
		last = id
		again := messages.NewID(at)
		if seen[id] || seen[again] || id == again {
			t.Errorf("%q is not unique", id)
		}
		seen[id], seen[again] = true, true
	}
}

func TestNewIDUsesAllItsRandomBits(t *testing.T) {
	t.Parallel()
	var seen [16]map[byte]bool
	for range 500 {
		for i, c := range []byte(messages.NewID(noon)[10:]) {
			if seen[i] == nil {
				seen[i] = map[byte]bool{}
			}
			seen[i][c] = true
		}
	}
	for i, chars := range seen {
		if len(chars) < 24 {
			t.Errorf("character %d has only %d values", 10+i, len(chars))
		}
	}
}
