// Package scratchpad holds the notes that a run keeps for itself while it works: what it found, what it still has to do. Notes are in
// streams with names. They are a fold of the changes that the run's log holds, so that they survive whatever loses a copy of
// them, and a run of a session may begin with those of the run before. Pure, and for one goroutine.
//
//	var p scratchpad.Pad
//	evicted := p.Append(scratchpad.Note{ID: "call-1", Stream: "found", Text: "Berth 4 is free on Monday."})
//	for _, n := range p.Search("berth", 10) {
//		fmt.Println(n.Stream, n.Text)
//	}
package scratchpad

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// Limits of a Pad. When a note would exceed one of the last two, the oldest notes of all streams go.
const (
	MaxNote    = 8 << 10  // bytes of one note
	MaxStreams = 16       // with notes in them
	MaxNotes   = 256      // of all streams
	MaxBytes   = 64 << 10 // of all notes
)

// DefaultStream is the stream of notes that name none.
const DefaultStream = "notes"

// Note is one entry of a stream.
type Note struct {
	ID     string `json:"id"` // unique in its Pad
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

// Pad is a scratchpad. The zero value is empty.
type Pad struct {
	Notes []Note `json:"notes,omitempty"` // of all streams, oldest first
}

// CheckStream says what is wrong with the name of a stream.
func CheckStream(name string) error {
	if !strict.ValidToken(name) {
		return errors.New("stream: must be 1 to 64 characters of A-Z a-z 0-9 _ -")
	}
	return nil
}

// Check says why a note cannot be appended; nil: it can. How many notes there are is no reason: older ones make room.
func (p *Pad) Check(n Note) error {
	if err := CheckStream(n.Stream); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(n.Text) == "":
		return errors.New("text: must not be empty")
	case len(n.Text) > MaxNote:
		return fmt.Errorf("text: has %d bytes, and a note may have %d", len(n.Text), MaxNote)
	}
	names := p.Streams()
	if _, known := names[n.Stream]; !known && len(names) >= MaxStreams {
		return fmt.Errorf("stream: there are %d already, as many as there may be: use or clear one of them", MaxStreams)
	}
	return nil
}

// Append adds a note and returns how many older ones made room for it. A note whose ID is there already changes nothing.
func (p *Pad) Append(n Note) (evicted int) {
	if slices.ContainsFunc(p.Notes, func(old Note) bool { return old.ID == n.ID }) {
		return 0
	}
	p.Notes = append(slices.Clip(p.Notes), n)
	size := p.Bytes()
	for len(p.Notes)-evicted > 1 && (len(p.Notes)-evicted > MaxNotes || size > MaxBytes) {
		size -= len(p.Notes[evicted].Text)
		evicted++
	}
	p.Notes = p.Notes[evicted:]
	return evicted
}

// Clear removes a stream and returns how many notes it had.
func (p *Pad) Clear(stream string) (removed int) {
	had := len(p.Notes)
	p.Notes = slices.DeleteFunc(slices.Clone(p.Notes), func(n Note) bool { return n.Stream == stream })
	return had - len(p.Notes)
}

// ReadOptions choose notes of a stream.
type ReadOptions struct {
	Stream string // empty: all
	After  string // the ID of a note: only younger ones. One that is gone is older than all
	Limit  int    // at most, 0: all
	Oldest bool   // of more than Limit the oldest, not the newest
}

// Read returns notes, oldest first.
func (p *Pad) Read(o ReadOptions) []Note {
	from := slices.IndexFunc(p.Notes, func(n Note) bool { return n.ID == o.After }) + 1
	var out []Note
	for _, n := range p.Notes[from:] {
		if o.Stream == "" || n.Stream == o.Stream {
			out = append(out, n)
		}
	}
	switch {
	case o.Limit <= 0 || len(out) <= o.Limit:
		return out
	case o.Oldest:
		return out[:o.Limit]
	default:
		return out[len(out)-o.Limit:]
	}
}

// Search returns the notes that hold all words of a text, in any case of letters: newest first, at most limit.
func (p *Pad) Search(text string, limit int) []Note {
	words := strings.Fields(strings.ToLower(text))
	var out []Note
	for _, n := range slices.Backward(p.Notes) {
		if len(out) >= limit {
			break
		}
		lower := strings.ToLower(n.Text)
		if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(lower, w) }) {
			out = append(out, n)
		}
	}
	return out
}

// Streams are the names of the streams and how many notes each has.
func (p *Pad) Streams() map[string]int {
	out := map[string]int{}
	for _, n := range p.Notes {
		out[n.Stream]++
	}
	return out
}

// Names are the names of the streams, sorted.
func (p *Pad) Names() []string { return slices.Sorted(maps.Keys(p.Streams())) }

// Bytes is the size of all notes.
func (p *Pad) Bytes() (n int) {
	for i := range p.Notes {
		n += len(p.Notes[i].Text)
	}
	return n
}

// Clone is a copy that may be changed apart from p.
func (p *Pad) Clone() Pad { return Pad{slices.Clone(p.Notes)} }
