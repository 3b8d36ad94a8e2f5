package api

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// place is how far a client has read a stream that is mapped from events and live text: the id of a frame. No dispatcher
// remembers what it gave to whom, so the id holds what another one needs to continue.
//
// 7 is after all frames of event 7, 7.2 after two of them. What follows a ~ is the message that is being written.
type place struct {
	event  uint64
	frames int // of the event; 0: all
	writing
}

// writing is what was given of a message while its reply is written.
type writing struct {
	messages.LivePlace

	open   bool   // it has begun and not ended
	broken bool   // text was lost on the way: the end of the reply brings the rest
	owed   bool   // it has ended, and the client was not told to take it away
	tries  int    // messages of this step that were given up
	length int    // of its text, in bytes
	sum    uint64 // FNV-1a of its text, from 0
}

func (w *writing) add(text string) {
	w.length += len(text)
	w.sum = fnv1a(w.sum, text)
}

// rest is what follows what was given of a text; false: that was of another text.
func (w *writing) rest(text string) (rest string, ok bool) {
	if len(text) < w.length || fnv1a(0, text[:w.length]) != w.sum {
		return "", false
	}
	return text[w.length:], true
}

// fnv1a continues with a sum. The package hash/fnv cannot continue with one that comes as text.
func fnv1a(sum uint64, s string) uint64 {
	const prime = 1099511628211
	for i := range len(s) {
		sum = (sum ^ uint64(s[i])) * prime
	}
	return sum
}

func (p place) String() string {
	id := strconv.FormatUint(p.event, 10)
	if p.frames > 0 {
		id += "." + strconv.Itoa(p.frames)
	}
	if w := p.writing; w != (writing{}) {
		var states strings.Builder
		for _, s := range p.states() {
			if *s.is {
				states.WriteString(s.letter)
			}
		}
		id += fmt.Sprintf("~%d.%d.%d.%d.%d.%d.%x.%s", w.Step, w.Attempt, w.Try, w.N, w.tries, w.length, w.sum, states.String())
	}
	return id
}

type letterOf struct {
	letter string
	is     *bool
}

func (w *writing) states() []letterOf {
	return []letterOf{{"o", &w.open}, {"b", &w.broken}, {"r", &w.owed}}
}

// maxPlace is more than the longest id of a frame.
const maxPlace = 160

// parsePlace reads the id of a frame; false: it is none. The zero place is the beginning.
func parsePlace(id string) (p place, ok bool) {
	if id == "" {
		return place{}, true
	}
	event, live, written := strings.Cut(id, "~")
	event, frames, some := strings.Cut(event, ".")
	var err error
	if p.event, err = strconv.ParseUint(event, 10, 63); err != nil || len(id) > maxPlace {
		return place{}, false
	}
	if some && !count(frames, &p.frames) || (some || written) && p.event == 0 {
		return place{}, false
	}
	return p, !written || p.parse(live)
}

func (w *writing) parse(s string) bool {
	parts := strings.Split(s, ".")
	numbers := []*int{&w.Step, &w.Attempt, &w.Try, &w.N, &w.tries, &w.length}
	if len(parts) != len(numbers)+2 {
		return false
	}
	for i, n := range numbers {
		if !count(parts[i], n) {
			return false
		}
	}
	var err error
	if w.sum, err = strconv.ParseUint(parts[len(numbers)], 16, 64); err != nil {
		return false
	}
	left := parts[len(numbers)+1]
	for _, state := range w.states() {
		left, *state.is = strings.CutPrefix(left, state.letter)
	}
	return left == "" && (!w.open || !w.owed)
}

// count reads a number that is not negative.
func count(s string, n *int) bool {
	v, err := strconv.ParseUint(s, 10, 31)
	if err != nil || v > math.MaxInt32 {
		return false
	}
	*n = int(v)
	return true
}
