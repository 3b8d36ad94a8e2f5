package observability_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/worker/policy"
)

const (
	secret = "sk-proj-0123456789abcdef"
	quoted = `p"ss\w/rd <&> é`
	number = "314159265"
)

func newLogger(t *testing.T, cfg observability.LogConfig) (*slog.Logger, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	log, err := observability.NewLogger(&out, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return log, &out
}

func TestLoggerWritesJSONLines(t *testing.T) {
	log, out := newLogger(t, observability.LogConfig{})
	log = log.With("component", "worker")
	log.Debug("not shown")
	log.Warn("run ended", "task_id", "r1", "step", 3, "err", errors.New("no answer"), "tenant", "acme", "attempt", 2,
		"took", time.Second, "tools", []string{"a", "b"}, "host", netip.MustParseAddr("10.0.0.1"), "nothing", nil)

	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	at, err := time.Parse(time.RFC3339Nano, line["timestamp"].(string))
	if err != nil || at.Location() != time.UTC || time.Since(at) > time.Minute {
		t.Errorf("timestamp %v: %v", line["timestamp"], err)
	}
	delete(line, "timestamp")
	want := map[string]any{
		"level": "warn", "message": "run ended", "component": "worker", "tenant": "acme", "run": "r1", "step": 3.0, "attempt": 2.0,
		"data": map[string]any{
			"err": "no answer", "took": 1e9, "tools": []any{"a", "b"}, "host": "10.0.0.1", "nothing": nil,
		},
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Error(diff)
	}
}

func TestLoggerLevels(t *testing.T) {
	for level, want := range map[string]string{
		"": "info warn error", "debug": "debug info warn error", "info": "info warn error", "warn": "warn error", "error": "error",
	} {
		log, out := newLogger(t, observability.LogConfig{Level: level})
		log.Debug("m")
		log.Info("m")
		log.Warn("m")
		log.Error("m")
		var got []string
		for line := range strings.Lines(out.String()) {
			var l struct {
				Level string `json:"level"`
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l.Level)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("level %q: %s", level, diff)
		}
	}
}

func TestLoggerWritesText(t *testing.T) {
	log, out := newLogger(t, observability.LogConfig{Format: observability.FormatText, Redact: []string{secret}})
	log.Info("started with "+secret, "port", 9090, "tools", []string{"a", secret})
	_, rest, _ := strings.Cut(out.String(), " ")
	want := `level=info message="started with [redacted]" port=9090 tools="[\"a\",\"[redacted]\"]"` + "\n"
	if diff := cmp.Diff(want, rest); diff != "" {
		t.Error(diff)
	}
}

func TestNewLoggerRefuses(t *testing.T) {
	for want, cfg := range map[string]observability.LogConfig{
		`log level: "loud" is not one of debug, info, warn, error`: {Level: "loud"},
		`log level: "INFO" is not one of debug, info, warn, error`: {Level: "INFO"},
		`log format: "xml" is not one of json, text`:               {Format: "xml"},
	} {
		_, err := observability.NewLogger(&bytes.Buffer{}, cfg)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

type (
	stringer     struct{ s string }
	valuer       struct{ v any }
	panicking    struct{}
	pointed      struct{ err error }
	withText     struct{ s string }
	unmarshaling struct {
		S string
		F func()
	}
	nested struct {
		Name   string
		Secret *string
		Bytes  []byte
		Map    map[string]any
	}
)

func (s stringer) String() string               { return "stringer " + s.s }
func (v valuer) LogValue() slog.Value           { return slog.AnyValue(v.v) }
func (p *pointed) Error() string                { return p.err.Error() }
func (panicking) String() string                { panic(secret) }
func (w withText) MarshalText() ([]byte, error) { return []byte(w.s), nil }

// loggings are ways for a secret to reach a line.
func loggings(s string) map[string]func(*slog.Logger) {
	group := slog.Group("g", "inner", s, slog.Group("deep", "n", 1, "key", s))
	return map[string]func(*slog.Logger){
		"message":        func(l *slog.Logger) { l.Info("x" + s + "y") }, //nolint:sloglint // what must not leak
		"string":         func(l *slog.Logger) { l.Info("m", "k", "x"+s+"y") },
		"error":          func(l *slog.Logger) { l.Info("m", "err", fmt.Errorf("call: %w", errors.New("key "+s))) },
		"joined errors":  func(l *slog.Logger) { l.Info("m", "err", errors.Join(errors.New(s), errors.New(s))) },
		"error of a URL": func(l *slog.Logger) { _, err := url.Parse("http://u:" + s + "\x7f@h"); l.Info("m", "err", err) },
		"stringer":       func(l *slog.Logger) { l.Info("m", "k", stringer{s}) },
		"text marshaler": func(l *slog.Logger) { l.Info("m", "k", withText{s}) },
		"URL": func(l *slog.Logger) {
			l.Info("m", "k", &url.URL{Scheme: "redis", User: url.UserPassword("u", s), Host: "h"})
		},
		"bytes":                    func(l *slog.Logger) { l.Info("m", "k", []byte(s)) },
		"error with bytes":         func(l *slog.Logger) { l.Info("m", "err", fmt.Errorf("bad key %v", []byte(s))) },
		"raw JSON":                 func(l *slog.Logger) { b, _ := json.Marshal([]string{s}); l.Info("m", "k", json.RawMessage(b)) },
		"broken raw JSON":          func(l *slog.Logger) { l.Info("m", "k", json.RawMessage("{"+s)) },
		"base64":                   func(l *slog.Logger) { l.Info("m", "k", base64.StdEncoding.EncodeToString([]byte("user:"+s))) },
		"group":                    func(l *slog.Logger) { l.Info("m", group) },
		"group without name":       func(l *slog.Logger) { l.Info("m", slog.Group("", "k", s)) },
		"attributes of the logger": func(l *slog.Logger) { l.With(slog.String("k", s), group).Info("m") },
		"group of the logger": func(l *slog.Logger) {
			l.WithGroup("a").With("k", s).WithGroup("b").Info("m", slog.String("k", s), group)
		},
		"valuer":                func(l *slog.Logger) { l.Info("m", "k", valuer{s}) },
		"valuer of a valuer":    func(l *slog.Logger) { l.Info("m", "k", valuer{valuer{errors.New(s)}}) },
		"valuer of a group":     func(l *slog.Logger) { l.Info("m", "k", valuer{[]slog.Attr{slog.String("k", s), group}}) },
		"valuer of the logger":  func(l *slog.Logger) { l.With("k", valuer{nested{Name: s}}).Info("m") },
		"struct":                func(l *slog.Logger) { l.Info("m", "k", nested{s, &s, []byte("x" + s), map[string]any{s: []any{s}}}) },
		"map":                   func(l *slog.Logger) { l.Info("m", "k", map[string][]string{"authorization": {"Bearer " + s}}) },
		"value that is no JSON": func(l *slog.Logger) { l.Info("m", "k", unmarshaling{S: s, F: func() {}}) },
		"attribute of no kind":  func(l *slog.Logger) { l.Info("m", slog.Any("k", &s)) },
		"value without a key":   func(l *slog.Logger) { l.Info("m", []any{"k", 1, s}...) },
		"names of ours":         func(l *slog.Logger) { l.Info("m", "time", s, "level", s, "msg", s) },
		"panic":                 func(l *slog.Logger) { l.Info("m", "k", panicking{}) },
	}
}

func TestLoggerRedacts(t *testing.T) {
	hidden := map[string]bool{"panic": true, "broken raw JSON": true, "value that is no JSON": true} // not shown at all
	for _, format := range []string{observability.FormatJSON, observability.FormatText} {
		for _, s := range []string{secret, quoted} {
			for name, logging := range loggings(s) {
				t.Run(format+" "+name, func(t *testing.T) {
					log, out := newLogger(t, observability.LogConfig{Format: format, Redact: []string{"another secret", s, secret}})
					logging(log)
					if !hidden[name] && !strings.Contains(out.String(), policy.Mark) {
						t.Errorf("nothing is redacted in %s", out)
					}
					checkClean(t, out.String(), s)
					if format == observability.FormatJSON && !json.Valid(out.Bytes()) {
						t.Errorf("not JSON: %s", out)
					}
				})
			}
		}
	}
}

// checkClean looks for a secret in a line, as it is and in quotes.
func checkClean(t *testing.T, line, s string) {
	t.Helper()
	once, _ := json.Marshal(s)
	twice, _ := json.Marshal(string(once[1 : len(once)-1]))
	for _, form := range []string{s, string(once[1 : len(once)-1]), string(twice[1 : len(twice)-1]), url.QueryEscape(s)} {
		if strings.Contains(line, form) {
			t.Errorf("%q is in %s", form, line)
		}
	}
}

func TestLoggerRedactsNumbers(t *testing.T) {
	log, out := newLogger(t, observability.LogConfig{Redact: []string{number}})
	log.Info("m", "pin", 314159265, "other", 27182818)
	if line := out.String(); strings.Contains(line, number) || !strings.Contains(line, `"other":27182818`) {
		t.Error(line)
	}
}

func TestLoggerSurvivesValuesThatPanic(t *testing.T) {
	log, out := newLogger(t, observability.LogConfig{Redact: []string{secret}})
	var none *pointed
	log.Info("m", "err", error(none), "after", 1)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"err": "!PANIC in the value", "after": 1.0}, line["data"]); diff != "" {
		t.Error(diff)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add(secret, "before ", " after")
	f.Add(quoted, `\`, `"`)
	f.Add("nabcdef", "\n", "abcdef")
	f.Add("pass\xffword", "\xff", "é")
	f.Add(`{"Name":"`, "", "")
	f.Fuzz(func(t *testing.T, s, before, after string) {
		s = strings.TrimSpace(s)
		if len(s) < policy.MinSecret || strings.Contains(policy.Mark, s) || !utf8.ValidString(s) {
			return // half a character at the end of a secret is another one in JSON
		}
		log, out := newLogger(t, observability.LogConfig{Redact: []string{s}})
		text := before + s + after
		value := nested{Name: text, Map: map[string]any{text: text}}
		log.With("k", text).WithGroup("g").LogAttrs(t.Context(), slog.LevelInfo, text, //nolint:sloglint // what must not leak
			slog.Any("err", errors.New(text)), slog.Any("any", value), slog.Any("bytes", []byte(text)), slog.Group("h", "v", valuer{text}))
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("not JSON: %s", out)
		}
		for name, v := range line {
			if name != "timestamp" && name != "level" {
				checkValue(t, v, s)
			}
		}
	})
}

// checkValue looks for a secret in all text of a value, but for the names of groups and attributes, which are ours.
func checkValue(t *testing.T, v any, s string) {
	t.Helper()
	switch v := v.(type) {
	case string:
		if strings.Contains(v, s) {
			t.Errorf("%q is in %q", s, v)
		}
	case []any:
		for _, e := range v {
			checkValue(t, e, s)
		}
	case map[string]any:
		for _, e := range v {
			checkValue(t, e, s)
		}
	}
}

// Personal data is in no line, however it comes to be text. What names a run stays, whatever it looks like.
func TestLoggerTakesPersonalDataOut(t *testing.T) {
	const address, card = "bob@example.com", "4111111111111111"
	for _, format := range []string{observability.FormatJSON, observability.FormatText} {
		log, out := newLogger(t, observability.LogConfig{Format: format})
		log.With("task_id", card, "tenant", "acme").Warn("ask "+address, "err", errors.New("no "+address), "to", []string{address}, "pay", struct{ Card int }{4111111111111111})
		if line := out.String(); strings.Contains(line, "bob") || strings.Count(line, card) != 1 || strings.Count(line, policy.Mark) != 4 {
			t.Error(line)
		}
	}
}
