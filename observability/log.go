package observability

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/sensitive"
	"github.com/longshore-run/longshore/worker/policy"
)

// Formats of logs.
const (
	FormatJSON = "json" // a logentry.LogEntry a line
	FormatText = "text" // key=value, for people
)

// LogConfig says what a logger writes.
type LogConfig struct {
	Level  string   // The lowest level that is written: debug, info, warn or error. Default info.
	Format string   // FormatJSON or FormatText. Default FormatJSON.
	Redact []string // Secrets that must not be written, as NewRedactor takes them.
}

// Names of what every line begins with.
const (
	keyTime    = "timestamp" // RFC 3339 in UTC
	keyLevel   = "level"     // lower case
	keyMessage = "message"
)

// NewLogger returns a logger that writes a line at a time to w. In JSON a line is a logentry.LogEntry: what an entry has
// a field for, as component, tenant, task_id, step and attempt, stands at the top, and all other attributes in data. In
// text all stand side by side. The wiring adds "component". Secrets, keys and personal data in messages and in the values of
// attributes are replaced, however the values come to be text. Keys and the names of groups are ours and left as they are.
func NewLogger(w io.Writer, cfg LogConfig) (*slog.Logger, error) {
	level, err := parseLevel(cmp.Or(cfg.Level, "info"))
	if err != nil {
		return nil, err
	}
	r := redaction{policy.NewRedactor(cfg.Redact...)}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: r.replace}
	switch cmp.Or(cfg.Format, FormatJSON) {
	case FormatJSON:
		return slog.New(&entryHandler{next: slog.NewJSONHandler(w, options)}), nil
	case FormatText:
		return slog.New(slog.NewTextHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("log format: %q is not one of json, text", cfg.Format)
	}
}

func parseLevel(name string) (slog.Level, error) {
	switch name {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	default:
		return 0, fmt.Errorf("log level: %q is not one of debug, info, warn, error", name)
	}
}

// levelOf is the level of an entry that slog knows by a number.
func levelOf(l slog.Level) logentry.LogLevel {
	switch {
	case l < slog.LevelInfo:
		return logentry.LogDebug
	case l < slog.LevelWarn:
		return logentry.LogInfo
	case l < slog.LevelError:
		return logentry.LogWarn
	default:
		return logentry.LogError
	}
}

// redaction is what slog asks about every attribute, whichever way it came: of the record, of the logger, inside a
// group; after a LogValuer gave its value.
type redaction struct{ redactor *policy.Redactor }

func (r redaction) replace(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 {
		switch {
		case a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
			return slog.Time(keyTime, a.Value.Time().UTC())
		case a.Key == slog.LevelKey:
			if level, ok := a.Value.Any().(slog.Level); ok {
				return slog.String(keyLevel, string(levelOf(level)))
			}
		case a.Key == slog.MessageKey:
			a.Key = keyMessage
		}
	}
	if isID(a.Key) { // it may look like a number of something else, and is needed to find what the line is about
		a.Value = r.value(a.Value)
	} else {
		a.Value = withoutPersonal(r.value(a.Value))
	}
	return a
}

// isID reports whether an attribute names something of ours.
func isID(key string) bool {
	switch key {
	case "tenant", "task_id", "run", "component", "trace", "traceparent", "worker", "session", "claim", "ticket", "seq", keyTime, keyLevel:
		return true
	default:
		return false
	}
}

// withoutPersonal takes keys and personal data out of text.
func withoutPersonal(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(sensitive.Redact(v.String()))
	case slog.KindAny:
		if raw, ok := v.Any().(json.RawMessage); ok {
			return slog.AnyValue(json.RawMessage(sensitive.RedactJSON(string(raw))))
		}
	default:
	}
	return v
}

func (r redaction) value(v slog.Value) slog.Value {
	if v.Kind() == slog.KindAny {
		return r.any(v.Any())
	}
	text := v.String()
	if redacted := r.redactor.String(text); v.Kind() == slog.KindString || redacted != text {
		return slog.StringValue(redacted)
	}
	return v
}

// What stands for a value that cannot be made into text. Nothing of it is shown: it could not be redacted.
const (
	panicked   = "!PANIC in the value" // as nil pointers do
	unreadable = "!ERROR "             // and why
)

// any makes text of a value and redacts that: what the handler would make of it later could not be redacted.
func (r redaction) any(v any) (out slog.Value) {
	defer func() {
		if recover() != nil {
			out = slog.StringValue(panicked)
		}
	}()
	switch v := v.(type) {
	case nil:
		return slog.AnyValue(nil)
	case error:
		return slog.StringValue(r.redactor.String(v.Error()))
	case []byte:
		return slog.StringValue(r.redactor.String(string(v)))
	case json.Marshaler, encoding.TextMarshaler:
		return r.json(v)
	case fmt.Stringer:
		return slog.StringValue(r.redactor.String(v.String()))
	default:
		return r.json(v)
	}
}

func (r redaction) json(v any) slog.Value {
	raw, err := json.Marshal(v)
	if err != nil {
		return slog.StringValue(unreadable + r.redactor.String(err.Error()))
	}
	text := r.redactor.String(string(raw))
	if !json.Valid([]byte(text)) {
		return slog.StringValue(text)
	}
	return slog.AnyValue(json.RawMessage(text))
}
