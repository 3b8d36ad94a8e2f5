package cli_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/longshore-run/longshore/messages"
)

var colorCodes = regexp.MustCompile("\x1b\\[[0-9]+m")

// screen is what a terminal shows in the end. It fails the test on a line that would not fit, since the terminal
// would wrap it and erase only its last part.
func screen(t *testing.T, s string, width int) []string {
	t.Helper()
	var lines []string
	for l := range strings.SplitSeq(colorCodes.ReplaceAllString(s, ""), "\n") {
		drawn := strings.Split(l, "\r\x1b[K")
		for _, d := range drawn {
			if n := cells(d); n >= width && !resultLine(d) {
				t.Errorf("%d columns in a terminal of %d: %q", n, width, d)
			}
		}
		lines = append(lines, drawn[len(drawn)-1])
	}
	return lines
}

// resultLine reports whether a line is of the recorded result, which is shown whole and may wrap.
func resultLine(s string) bool {
	return strings.HasPrefix(s, "I wrote report.md:") || strings.HasPrefix(s, "- ")
}

// cells counts columns for the characters that the recordings have.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n++
		if unicode.Is(unicode.Han, r) || r >= 0x3000 && r <= 0x303e {
			n++
		}
	}
	return n
}

func lastLine(s string) string {
	return s[strings.LastIndex(s, "\r\x1b[K")+len("\r\x1b[K"):]
}

// safeBuffer is a buffer that two goroutines may use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func finished(t *testing.T, e messages.Event) *messages.AgentResult {
	t.Helper()
	var d messages.RunFinished
	if err := json.Unmarshal(e.Data, &d); err != nil {
		t.Fatal(err)
	}
	return &d.Result
}

func quoted(tb testing.TB, s string) string {
	tb.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}
