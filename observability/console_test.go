package observability_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/observability"
)

// A person gets a short line of what a logger writes, without what could steer the terminal and without secrets.
func TestConsole(t *testing.T) {
	for name, color := range map[string]bool{"plain": false, "color": true} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := observability.Console(&out, color)
			log, err := observability.NewLogger(w, observability.LogConfig{Redact: []string{"sk-very-secret-1"}})
			if err != nil {
				t.Fatal(err)
			}
			log.Warn("a call failed", "component", "runner", "run", "r1", "tries", 3, "err", "no \x1b[2J sk-very-secret-1")
			if _, err := w.Write([]byte("no entry\n")); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if color != strings.Contains(got, "\x1b[33mWARN\x1b[0m") {
				t.Errorf("%q", got)
			}
			for _, code := range []string{"\x1b[2m", "\x1b[33m", "\x1b[0m"} {
				got = strings.ReplaceAll(got, code, "")
			}
			if _, line, _ := strings.Cut(got, " "); !strings.HasPrefix(line, "WARN runner: a call failed run=r1 err=\"no \\x1b[2J ") ||
				!strings.HasSuffix(line, " tries=3\nno entry\n") || strings.Contains(got, "very-secret") || strings.Contains(got, "\x1b") {
				t.Errorf("%q", got)
			}
		})
	}
}
