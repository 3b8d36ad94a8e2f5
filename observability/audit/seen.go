package audit

import (
	"crypto/sha256"

	"github.com/longshore-run/longshore/messages"
)

// maxSeen is how many events are remembered: those of some thousand runs that have not ended, in some 20 MB.
const maxSeen = 200_000

// seen are the hashes of the events of runs that have not ended, as the feed had them: a run that ends need not be read again. What was forgotten,
// or was read before the auditor was started, is read from the stream. It belongs to the goroutine that reads.
type seen struct {
	runs  map[messages.Ref]map[uint64]Hash
	count int
}

// add remembers an event.
func (s *seen) add(run messages.Ref, number uint64, text []byte) {
	if s.count >= maxSeen || s.runs == nil {
		s.runs, s.count = map[messages.Ref]map[uint64]Hash{}, 0
	}
	of := s.runs[run]
	if of == nil {
		of = map[uint64]Hash{}
		s.runs[run] = of
	}
	sum := Hash(sha256.Sum256(text))
	before, again := of[number]
	switch {
	case !again:
		of[number] = sum
		s.count++
	case before != sum:
		of[number] = Hash{} // of nothing: one of the two is wrong
	}
}

// take returns what is remembered of a run, and forgets it.
func (s *seen) take(run messages.Ref) map[uint64]Hash {
	of := s.runs[run]
	s.count -= len(of)
	delete(s.runs, run)
	return of
}
