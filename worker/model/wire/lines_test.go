package wire_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/worker/model/wire"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 9000)
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"LF":                  {"a\nb\n", []string{"a", "b"}},
		"CR LF":               {"a\r\nb\r\n\r\nc", []string{"a", "b", "", "c"}},
		"CR":                  {"a\rb\r\rc\r", []string{"a", "b", "", "c"}},
		"all of them":         {"a\rb\nc\r\n\r\rd\n\re", []string{"a", "b", "c", "", "", "d", "", "e"}},
		"no end":              {"a", []string{"a"}},
		"nothing":             {"", nil},
		"longer than buffers": {long + "\r" + long + "\n" + long, []string{long, long, long}},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, r := range map[string]io.Reader{
				"whole": strings.NewReader(tc.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.in)),
			} {
				lines := wire.Lines{Source: bufio.NewReaderSize(r, 16), Max: 1 << 20}
				var got []string
				for {
					line, err := lines.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, string(line))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: %s", kind, diff)
				}
			}
		})
	}
}

func TestLongLinesAreRefused(t *testing.T) {
	for _, in := range []string{strings.Repeat("x", 101), strings.Repeat("x", 101) + "\n", strings.Repeat("x", 5000)} {
		lines := wire.Lines{Source: bufio.NewReaderSize(strings.NewReader(in), 16), Max: 100}
		if _, err := lines.Next(); !errors.Is(err, wire.ErrLongLine) {
			t.Errorf("%d bytes: %v", len(in), err)
		}
	}
}

// A line is there once its CR has come: a server may be silent after it.
func TestLineEndsWithItsCR(t *testing.T) {
	in, out := io.Pipe()
	defer func() { _ = out.Close() }()
	go func() { _, _ = io.WriteString(out, "a\r") }()
	lines := wire.Lines{Source: bufio.NewReader(in), Max: 100}
	if line, err := lines.Next(); string(line) != "a" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
}
