package policy

import (
	"fmt"
	"io"
	"strings"
)

// Writer redacts a stream. It is for one goroutine.
type Writer struct {
	redactor *Redactor
	to       io.Writer
	held     []byte // may be the beginning of a secret; shorter than the longest needle
	covered  int    // bytes at the start of held whose Mark is written
}

// Writer returns a writer that redacts what it passes on to w, also secrets that come in pieces. What may be the
// beginning of a secret is held back until it is clear, or Flush is called.
func (r *Redactor) Writer(w io.Writer) *Writer {
	if r == nil {
		r = &Redactor{}
	}
	return &Writer{redactor: r, to: w}
}

// Write passes p on. After an error nothing more should be written: some of p may have been passed on.
func (w *Writer) Write(p []byte) (int, error) {
	text := string(w.held) + string(p)
	if err := w.pass(text, w.redactor.clear(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush passes on what is held back: the stream ends here.
func (w *Writer) Flush() error { return w.pass(string(w.held), len(w.held)) }

// pass writes the text up to cut and holds the rest.
func (w *Writer) pass(text string, cut int) error {
	hidden := w.redactor.spans(text)
	out, from := []byte(nil), min(w.covered, cut)
	covered := w.covered
	for _, h := range hidden {
		if h.start >= cut {
			break
		}
		if h.start >= covered { // else it continues under the Mark before
			out = append(out, text[from:h.start]...)
			out = append(out, Mark...)
		}
		covered = max(covered, h.end)
		from = min(covered, cut)
	}
	out = append(out, text[from:cut]...)
	w.held, w.covered = []byte(text[cut:]), max(covered-cut, 0)
	if len(out) == 0 {
		return nil
	}
	if _, err := w.to.Write(out); err != nil {
		return fmt.Errorf("write redacted text: %w", err)
	}
	return nil
}

// clear is how much of a text cannot be the beginning of a secret that continues behind its end.
func (r *Redactor) clear(text string) int {
	for i := max(0, len(text)-r.longest+1); i < len(text); i++ {
		for _, needle := range r.needles {
			if len(needle) > len(text)-i && strings.HasPrefix(needle, text[i:]) {
				return i
			}
		}
	}
	return len(text)
}
