package observability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/longshore-run/longshore/messages/logentry"
)

// Console returns a writer that a JSON logger may write to, for a person at a terminal: each entry becomes a short line
// with its time of day. What is not a log entry passes as it is. Characters that could steer the terminal become question marks.
func Console(w io.Writer, color bool) io.Writer { return &console{w: w, color: color} }

type console struct {
	w     io.Writer
	color bool
}

// Write implements io.Writer. A logger writes one whole line at a time.
func (c *console) Write(p []byte) (int, error) {
	var e logentry.LogEntry
	text := string(p)
	if json.Unmarshal(bytes.TrimSpace(p), &e) == nil && e.Level != "" && !e.Timestamp.IsZero() {
		text = c.line(&e)
	}
	if _, err := io.WriteString(c.w, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *console) line(e *logentry.LogEntry) string {
	var b strings.Builder
	b.WriteString(c.paint(colorDim, e.Timestamp.Local().Format(time.TimeOnly)))
	b.WriteString(" " + c.level(e.Level) + " ")
	if e.Component != "" {
		b.WriteString(c.paint(colorDim, plain(e.Component)+":") + " ")
	}
	b.WriteString(plain(e.Message))
	if e.Run != "" {
		b.WriteString(c.paint(colorDim, " run=") + plain(e.Run))
	}
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		b.WriteString(c.paint(colorDim, " "+plain(key)+"=") + plain(consoleValue(e.Data[key])))
	}
	return b.String() + "\n"
}

// Control sequences.
const (
	colorDim    = "\x1b[2m"
	colorRed    = "\x1b[31m"
	colorYellow = "\x1b[33m"
	colorGreen  = "\x1b[32m"
	colorOff    = "\x1b[0m"
)

func (c *console) paint(color, text string) string {
	if !c.color {
		return text
	}
	return color + text + colorOff
}

// level is the level in four columns.
func (c *console) level(l logentry.LogLevel) string {
	switch l {
	case logentry.LogError:
		return c.paint(colorRed, "FAIL")
	case logentry.LogWarn:
		return c.paint(colorYellow, "WARN")
	case logentry.LogDebug:
		return c.paint(colorDim, "DBUG")
	case logentry.LogInfo:
		return c.paint(colorGreen, "INFO")
	default:
		return "    "
	}
}

func consoleValue(v any) string {
	if s, ok := v.(string); ok {
		if s == "" || strings.ContainsAny(s, " \t\"=") {
			return fmt.Sprintf("%q", s)
		}
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(raw)
}

// plain is text without what could steer a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
