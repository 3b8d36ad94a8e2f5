package messages_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/logentry"
)

func fullLogEntry() *logentry.LogEntry {
	return &logentry.LogEntry{
		Timestamp: noon, Level: logentry.LogWarn, Component: "runner", Message: "tool failed",
		Data:   map[string]any{"tool": "read_file", "code": "tool_failed", "millis": 12.0, "nothing": nil, "args": []any{"a"}},
		Tenant: ref.Tenant, Run: ref.Run, Step: 2, Attempt: 1, Worker: "w-1",
	}
}

func TestDecodeLogEntry(t *testing.T) {
	t.Parallel()
	const good = `{"timestamp":"2026-01-02T15:04:05Z","level":"info","component":"runner","message":"m","data":{"a":1},"tenant":"acme","run":"r","step":1,"attempt":2,"worker":"w"}`
	run := messages.Ref{Tenant: "acme", Run: "r"}
	for name, tc := range map[string]struct{ old, new, field string }{
		"good":                {"", "", ""},
		"without data":        {`"data":{"a":1},`, "", ""},
		"of no step":          {`"step":1,`, "", ""},
		"no JSON":             {"{", "", "body"},
		"a list":              {good, "[]", "body"},
		"an unknown field":    {`"step":1`, `"step":1,"mood":"fine"`, "mood"},
		"a field twice":       {`"step":1`, `"step":1,"step":2`, "step"},
		"another level":       {`"info"`, `"loud"`, "level"},
		"a hostile level":     {`"info"`, `"\u001b[2J"`, "level"},
		"no level":            {`"level":"info",`, "", "level"},
		"no time":             {`"timestamp":"2026-01-02T15:04:05Z",`, "", "timestamp"},
		"a time in words":     {`"2026-01-02T15:04:05Z"`, `"today"`, "timestamp"},
		"another run":         {`"r"`, `"other"`, "run"},
		"another tenant":      {`"acme"`, `"evil"`, "tenant"},
		"no run":              {`"run":"r",`, "", "run"},
		"no component":        {`"component":"runner",`, "", "component"},
		"a long component":    {`"runner"`, `"` + strings.Repeat("a", 257) + `"`, "component"},
		"no message":          {`"message":"m",`, "", "message"},
		"a long message":      {`"m"`, `"` + strings.Repeat("a", 16<<10+1) + `"`, "message"},
		"a NUL in a message":  {`"m"`, `"\u0000"`, "message"},
		"half a character":    {`"m"`, "\"\xff\"", "message"},
		"half a pair":         {`"m"`, `"\ud800"`, "message"},
		"data that is a list": {`{"a":1}`, `[1]`, "data"},
		"data twice":          {`{"a":1}`, `{"a":1,"a":2}`, "data.a"},
		"deep data":           {`{"a":1}`, `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, ""},
		"a negative step":     {`"step":1`, `"step":-1`, "step"},
		"a huge step":         {`"step":1`, `"step":4294967296`, "step"},
		"a negative attempt":  {`"attempt":2`, `"attempt":-1`, "attempt"},
		"much too long":       {`{"a":1}`, `{"a":"` + strings.Repeat("a", 64<<10) + `"}`, "body"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := logentry.DecodeLogEntry(run, []byte(strings.Replace(good, tc.old, tc.new, 1)))
			fe, _ := errors.AsType[*messages.FieldError](err)
			switch {
			case name == "deep data":
				if fe == nil {
					t.Error("it is taken")
				}
			case tc.field == "" && err != nil, tc.field != "" && (fe == nil || fe.Field != tc.field):
				t.Errorf("got %v, want a mistake in %q", err, tc.field)
			}
		})
	}
}

// What any of our processes logs can be read again, whatever stands in it.
func TestEncodeLogEntryMendsAnything(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x01é", 40<<10)
	many := map[string]any{}
	for i := range 5000 {
		many[fmt.Sprintf("%05d", i)] = long[:100]
	}
	deep := any("x")
	for range 200 {
		deep = []any{deep}
	}
	for name, change := range map[string]func(*logentry.LogEntry){
		"nothing":           func(*logentry.LogEntry) {},
		"a long message":    func(e *logentry.LogEntry) { e.Message = long },
		"broken text":       func(e *logentry.LogEntry) { e.Message, e.Component, e.Worker = "a\xffb\x00c", "\xff", "\xff\xff" },
		"long names":        func(e *logentry.LogEntry) { e.Component, e.Worker = long, long },
		"a long value":      func(e *logentry.LogEntry) { e.Data = map[string]any{"stack": long, "b": 1} },
		"long values":       func(e *logentry.LogEntry) { e.Data = map[string]any{"a": long, "b": long, "c": long, "d": long} },
		"long keys":         func(e *logentry.LogEntry) { e.Data = map[string]any{long: 1, "\xff" + long: 2, "\x00": 3} },
		"many values":       func(e *logentry.LogEntry) { e.Data = many },
		"a large list":      func(e *logentry.LogEntry) { e.Data = map[string]any{"many": many} },
		"deep lists":        func(e *logentry.LogEntry) { e.Data = map[string]any{"deep": deep} },
		"a key twice":       func(e *logentry.LogEntry) { e.Data = map[string]any{"a": json.RawMessage(`{"x":1,"x":2}`)} },
		"half a pair":       func(e *logentry.LogEntry) { e.Data = map[string]any{"a": json.RawMessage(`"\ud800"`)} },
		"broken raw text":   func(e *logentry.LogEntry) { e.Data = map[string]any{"a": json.RawMessage("\"\xff\"")} },
		"no JSON":           func(e *logentry.LogEntry) { e.Data = map[string]any{"a": make(chan int), "b": json.RawMessage("{")} },
		"a huge number":     func(e *logentry.LogEntry) { e.Data = map[string]any{"a": json.RawMessage("1e999"), "b": math.Inf(1)} },
		"another time zone": func(e *logentry.LogEntry) { e.Timestamp = noon.In(time.FixedZone("x", 3600)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := *fullLogEntry()
			change(&e)
			data, err := logentry.EncodeLogEntry(e)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > 40<<10 {
				t.Errorf("%d bytes", len(data))
			}
			if _, err := logentry.DecodeLogEntry(ref, data); err != nil {
				t.Fatalf("%v: %.300s", err, data)
			}
		})
	}
	for name, change := range map[string]func(*logentry.LogEntry){
		"level":     func(e *logentry.LogEntry) { e.Level = "loud" },
		"id":        func(e *logentry.LogEntry) { e.Run = "*" },
		"tenant":    func(e *logentry.LogEntry) { e.Tenant = "" },
		"timestamp": func(e *logentry.LogEntry) { e.Timestamp = time.Time{} },
		"message":   func(e *logentry.LogEntry) { e.Message = "" },
	} {
		e := *fullLogEntry()
		change(&e)
		_, err := logentry.EncodeLogEntry(e)
		if fe, ok := errors.AsType[*messages.FieldError](err); !ok || fe.Field != name {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestLogLevels(t *testing.T) {
	t.Parallel()
	levels := []logentry.LogLevel{logentry.LogDebug, logentry.LogInfo, logentry.LogWarn, logentry.LogError}
	for i, asked := range levels {
		for j, level := range levels {
			if asked.Covers(level) != (j >= i) {
				t.Errorf("%s covers %s: %v", asked, level, asked.Covers(level))
			}
		}
	}
	if !logentry.LogLevel("").Covers(logentry.LogDebug) {
		t.Error("who asks for nothing does not see all")
	}
}

func FuzzDecodeLogEntry(f *testing.F) {
	seed(f, "testdata/golden/log_entry.json")
	f.Add([]byte(`{"timestamp":"2026-01-02T15:04:05+01:00","level":"info","component":"\u0001","message":"\"","data":{"":{"":[1e1,null]}},"tenant":"acme","run":"r"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := logentry.DecodeLogEntry(ref, data)
		if err != nil {
			wantFieldError(t, "body", err)
			return
		}
		again, err := logentry.EncodeLogEntry(e)
		if err != nil {
			t.Fatalf("what was decoded cannot be stored: %v", err)
		}
		if _, err := logentry.DecodeLogEntry(ref, again); err != nil {
			t.Fatalf("what was stored cannot be decoded: %v: %s", err, again)
		}
	})
}
