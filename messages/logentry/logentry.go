// Package logentry has the lines of logs that processes write about runs: their levels, how large they may be, and how they
// are read back from where any client may have written them. An entry may be lost; nothing is decided by one.
package logentry

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// LogLevel says how much an entry matters.
type LogLevel string

// Levels of log entries, the lowest first.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// rank is -1 for what is no level.
func (l LogLevel) rank() int {
	return slices.Index([]LogLevel{LogDebug, LogInfo, LogWarn, LogError}, l)
}

// Check returns a *FieldError for what is no level.
func (l LogLevel) Check() error {
	if l.rank() < 0 {
		return &messages.FieldError{Field: "level", Reason: "must be debug, info, warn or error"}
	}
	return nil
}

// Covers reports whether an entry of another level is shown by who asked for this one; empty asks for all.
func (l LogLevel) Covers(other LogLevel) bool { return other.rank() >= l.rank() }

// LogEntry is a line of a log: what a process of the fleet writes to its standard error, and, when it is about a run,
// what is stored on Ref.LogEntriesSubject. It tells people more than events do, and may be lost.
type LogEntry struct {
	Timestamp time.Time      `json:"timestamp"` // by the clock of the process
	Level     LogLevel       `json:"level"`
	Component string         `json:"component"` // the part of the process, such as runner
	Message   string         `json:"message"`   // the same text whenever the same happens; what differs is in data
	Data      map[string]any `json:"data,omitempty"`
	Tenant    string         `json:"tenant,omitempty"`
	Run       string         `json:"run,omitempty"`
	Step      int            `json:"step,omitempty"`    // from 1; 0: before the first, or of no step
	Attempt   int            `json:"attempt,omitempty"` // claims of the run so far
	Worker    string         `json:"worker,omitempty"`  // name of the worker that wrote it
}

// Limits of an entry that is stored, in bytes.
const (
	maxLogMessage = 8 << 10
	maxLogData    = 16 << 10 // as JSON
	maxLogValue   = 6 << 10  // of one value in data that is too large, as JSON
	maxLogName    = 128      // of component, worker and keys of data
	maxLogLine    = 64 << 10 // of the whole entry: limits, written as JSON
)

// leftOut is the key of data that says how many others were left out.
const leftOut = "_leftOut"

// Bounded is the entry as it may be stored: names and texts are shortened and say by how much, and what is not text is
// repaired. It shares nothing that it changed.
func (e *LogEntry) Bounded() LogEntry {
	out := *e
	out.Timestamp = e.Timestamp.UTC()
	out.Component, out.Worker = soundText(e.Component, maxLogName), soundText(e.Worker, maxLogName)
	out.Message = soundText(e.Message, maxLogMessage)
	if len(e.Data) == 0 {
		out.Data = nil
		return out
	}
	data, room := make(map[string]any, len(e.Data)), maxLogData-2*maxLogName
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		value, size := soundValue(e.Data[key])
		key = soundText(key, maxLogName)
		if room -= size + maxLogName; room < 0 {
			break
		}
		data[key] = value
	}
	if n := len(e.Data) - len(data); n > 0 {
		data[leftOut] = n
	}
	out.Data = data
	return out
}

// soundText is s as JSON of about n bytes at most, without what not every consumer could read.
func soundText(s string, n int) string {
	return strict.Brief(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD"), n)
}

// soundValue is a value that is strict JSON of bounded size: itself, or the beginning of its text.
func soundValue(v any) (_ any, size int) {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte(`"` + unreadableValue + `"`)
	}
	text, isText := v.(string)
	if !isText && len(raw) <= maxLogValue {
		var free any
		// Two levels are open around it.
		if strict.DecodeDepth("data", strict.MaxDepth-2, raw, &free) == nil {
			return json.RawMessage(raw), len(raw)
		}
	}
	if !isText {
		text = string(raw)
	}
	text = soundText(text, maxLogValue)
	raw, _ = json.Marshal(text) // text always can
	return text, len(raw)
}

const unreadableValue = "!ERROR a value that is no JSON"

// EncodeLogEntry is the entry of a run as it is stored: bounded, and such that DecodeLogEntry reads it. A *FieldError
// names what cannot be repaired.
func EncodeLogEntry(e LogEntry) ([]byte, error) {
	e = e.Bounded()
	run := messages.Ref{Tenant: e.Tenant, Run: e.Run}
	if err := e.check(run); err != nil {
		return nil, err
	}
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode log entry: %w", err)
	}
	if len(data) > maxLogLine {
		return nil, &messages.FieldError{Field: strict.Body, Reason: fmt.Sprintf("larger than %d bytes", maxLogLine)}
	}
	return data, nil
}

// DecodeLogEntry decodes an entry from the subject of a run. It is untrusted input: any publisher may have written it. The error is
// a *FieldError.
func DecodeLogEntry(run messages.Ref, data []byte) (LogEntry, error) {
	var e LogEntry
	if len(data) > maxLogLine {
		return LogEntry{}, &messages.FieldError{Field: strict.Body, Reason: fmt.Sprintf("larger than %d bytes", maxLogLine)}
	}
	if err := strict.Decode(data, &e); err != nil {
		return LogEntry{}, err
	}
	if err := e.check(run); err != nil {
		return LogEntry{}, err
	}
	return e, nil
}

func (e *LogEntry) check(run messages.Ref) error {
	if err := run.Check(); err != nil {
		return err
	}
	if err := e.Level.Check(); err != nil {
		return err
	}
	for _, text := range []struct {
		field, value string
		limit        int
		needed       bool
	}{
		{"component", e.Component, 2 * maxLogName, true}, {"message", e.Message, 2 * maxLogMessage, true}, {"worker", e.Worker, 2 * maxLogName, false},
	} {
		if text.needed && text.value == "" {
			return &messages.FieldError{Field: text.field, Reason: "is missing"}
		}
		if err := strict.CheckText(text.field, text.value, text.limit); err != nil {
			return err
		}
	}
	switch {
	case e.Timestamp.IsZero():
		return &messages.FieldError{Field: "timestamp", Reason: "is missing"}
	case e.Timestamp.Year() > 9999 || e.Timestamp.Year() < 0:
		return &messages.FieldError{Field: "timestamp", Reason: "is not a valid time"}
	case e.Tenant != run.Tenant:
		return &messages.FieldError{Field: "tenant", Reason: "differs from that of the subject"}
	case e.Run != run.Run:
		return &messages.FieldError{Field: "run", Reason: "differs from that of the subject"}
	case e.Step < 0 || e.Step > math.MaxInt32:
		return &messages.FieldError{Field: "step", Reason: fmt.Sprintf("must be 0 to %d", math.MaxInt32)}
	case e.Attempt < 0 || e.Attempt > math.MaxInt32:
		return &messages.FieldError{Field: "attempt", Reason: fmt.Sprintf("must be 0 to %d", math.MaxInt32)}
	}
	return nil
}

// StoredLogEntry is an entry with its place.
type StoredLogEntry struct {
	Seq uint64 `json:"seq"` // grows; to continue after
	LogEntry
}

// LogEntryList is a page of the entries of a run, oldest first.
type LogEntryList struct {
	Entries []StoredLogEntry `json:"entries"`
	Next    uint64           `json:"next,omitempty"` // continue after this one; absent: there are no more as of now
}

// MaxLogEntries bounds what is stored of a run: the newest ones.
const MaxLogEntries = 1000
