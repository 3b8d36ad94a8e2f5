package scratchpad_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/scratchpad"
)

func note(id, stream, text string) scratchpad.Note {
	return scratchpad.Note{ID: id, Stream: stream, Text: text}
}

func ids(notes []scratchpad.Note) (out []string) {
	for _, n := range notes {
		out = append(out, n.ID)
	}
	return out
}

func TestReadChooses(t *testing.T) {
	t.Parallel()
	var p scratchpad.Pad
	for i, stream := range []string{"found", "todo", "found", "found"} {
		p.Append(note(strconv.Itoa(i), stream, "text"))
	}
	for name, tc := range map[string]struct {
		o    scratchpad.ReadOptions
		want string
	}{
		"all":             {scratchpad.ReadOptions{}, "[0 1 2 3]"},
		"a stream":        {scratchpad.ReadOptions{Stream: "found"}, "[0 2 3]"},
		"the newest":      {scratchpad.ReadOptions{Stream: "found", Limit: 2}, "[2 3]"},
		"the oldest":      {scratchpad.ReadOptions{Limit: 2, Oldest: true}, "[0 1]"},
		"after one":       {scratchpad.ReadOptions{After: "1"}, "[2 3]"},
		"after a lost":    {scratchpad.ReadOptions{After: "gone", Limit: 9}, "[0 1 2 3]"},
		"unknown stream":  {scratchpad.ReadOptions{Stream: "none"}, "[]"},
		"after of others": {scratchpad.ReadOptions{Stream: "found", After: "1"}, "[2 3]"},
	} {
		if got := fmt.Sprint(ids(p.Read(tc.o))); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestAppendIsOnceAndBounded(t *testing.T) {
	t.Parallel()
	var p scratchpad.Pad
	p.Append(note("a", "s", "first"))
	if p.Append(note("a", "s", "again")); len(p.Notes) != 1 || p.Notes[0].Text != "first" {
		t.Errorf("a call that was made again: %+v", p.Notes)
	}
	for i := range scratchpad.MaxNotes {
		evicted := p.Append(note(strconv.Itoa(i), "s", "x"))
		if want := i == scratchpad.MaxNotes-1; evicted != 0 != want {
			t.Fatalf("note %d: %d made room", i, evicted)
		}
	}
	if len(p.Notes) != scratchpad.MaxNotes || p.Notes[0].ID != "0" {
		t.Errorf("%d notes from %s", len(p.Notes), p.Notes[0].ID)
	}
	p = scratchpad.Pad{}
	for i := range scratchpad.MaxBytes / scratchpad.MaxNote {
		if evicted := p.Append(note(strconv.Itoa(i), "s", strings.Repeat("x", scratchpad.MaxNote))); evicted != 0 {
			t.Fatalf("note %d: %d made room", i, evicted)
		}
	}
	if evicted := p.Append(note("last", "s", "x")); evicted != 1 || p.Bytes() > scratchpad.MaxBytes {
		t.Errorf("%d made room, %d bytes", evicted, p.Bytes())
	}
}

// A state that is advanced shares its notes with the one before it.
func TestAChangeLeavesCopiesAlone(t *testing.T) {
	t.Parallel()
	var p scratchpad.Pad
	p.Append(note("a", "s", "a"))
	p.Append(note("b", "u", "b"))
	before := p
	p.Clear("s")
	p.Append(note("c", "s", "c"))
	other := before
	other.Append(note("d", "s", "d"))
	if got := fmt.Sprint(ids(before.Notes), ids(p.Notes), ids(other.Notes)); got != "[a b] [b c] [a b d]" {
		t.Error(got)
	}
}

func TestSearchWantsAllWords(t *testing.T) {
	t.Parallel()
	var p scratchpad.Pad
	p.Append(note("1", "s", "Berth 4 is free on Monday"))
	p.Append(note("2", "s", "berth 5 is taken"))
	p.Append(note("3", "u", "Monday: call the BERTH office"))
	for text, want := range map[string]string{"berth": "[3 2 1]", "monday berth": "[3 1]", "5 monday": "[]", " ": "[]"} {
		if got := fmt.Sprint(ids(p.Search(text, 10))); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := p.Search("berth", 1); len(got) != 1 || got[0].ID != "3" {
		t.Errorf("the newest: %v", got)
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	var full scratchpad.Pad
	for i := range scratchpad.MaxStreams {
		full.Append(note(strconv.Itoa(i), "s"+strconv.Itoa(i), "x"))
	}
	for name, tc := range map[string]struct {
		p    scratchpad.Pad
		n    scratchpad.Note
		want string
	}{
		"fits":             {scratchpad.Pad{}, note("i", "s", "x"), ""},
		"stream":           {scratchpad.Pad{}, note("i", "a b", "x"), "stream: must be"},
		"no text":          {scratchpad.Pad{}, note("i", "s", " \n"), "text: must not be empty"},
		"long":             {scratchpad.Pad{}, note("i", "s", strings.Repeat("x", scratchpad.MaxNote+1)), "text: has 8193 bytes"},
		"a stream more":    {full, note("i", "another", "x"), "stream: there are 16 already"},
		"one that is used": {full, note("i", "s3", "x"), ""},
	} {
		switch err := tc.p.Check(tc.n); {
		case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func Example() {
	var p scratchpad.Pad
	p.Append(scratchpad.Note{ID: "call-1", Stream: "found", Text: "Berth 4 is free on Monday."})
	p.Append(scratchpad.Note{ID: "call-2", Stream: "todo", Text: "Ask whether the Ada comes."})
	for _, n := range p.Search("berth", 10) {
		fmt.Println(n.Stream, n.Text)
	}
	fmt.Println(slices.Clip(p.Names()))
	// Output:
	// found Berth 4 is free on Monday.
	// [found todo]
}
