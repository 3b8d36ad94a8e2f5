package prompt

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	maxTurns = 100_000     // writes and turns of loops
	maxWork  = 16 << 20    // bytes that filters and blocks make on the way to the result
	maxTime  = time.Second // looked at with every turn
)

// Why a render ends early.
var (
	errOutput = fmt.Errorf("makes more than %d bytes", maxOutput)
	errTurns  = fmt.Errorf("takes more than %d turns", maxTurns)
	errWork   = fmt.Errorf("needs more than %d bytes on the way", maxWork)
	errTime   = fmt.Errorf("takes longer than %v", maxTime)
	errFile   = errors.New("may not include anything")
)

// budget takes the result of a render and ends it when it is too much. It is the io.Writer of the engines that have
// one.
type budget struct {
	out   strings.Builder
	turns int
	work  int
	until time.Time
	spent error // what ran out; from then on nothing is taken

	redact func(string) string // nil: there are no secrets
}

func newBudget() *budget { return &budget{until: time.Now().Add(maxTime)} }

// turn counts a turn of a loop.
func (b *budget) turn() error {
	b.turns++
	switch {
	case b.spent != nil:
	case b.turns > maxTurns:
		b.spent = errTurns
	case time.Now().After(b.until):
		b.spent = errTime
	}
	return b.spent
}

// use counts bytes that are made on the way.
func (b *budget) use(n int) error {
	if b.work += n; b.spent == nil && (n > maxWork || b.work > maxWork) {
		b.spent = errWork
	}
	return b.spent
}

// redacted is a text without secrets. Reading it and making it both count.
func (b *budget) redacted(s string) (string, error) {
	if err := errors.Join(b.turn(), b.use(len(s))); err != nil || b.redact == nil {
		return s, b.spent
	}
	s = b.redact(s)
	if len(s) > maxOutput {
		return "", errOutput
	}
	return s, b.use(len(s))
}

// Write implements io.Writer.
func (b *budget) Write(p []byte) (int, error) {
	if err := b.turn(); err != nil {
		return 0, err
	}
	if b.out.Len()+len(p) > maxOutput {
		b.spent = errOutput
		return 0, b.spent
	}
	return b.out.Write(p)
}
