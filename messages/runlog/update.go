package runlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// stored is a value that is kept under a revision: the order of a session, the permits of a semaphore.
type stored[T any] struct {
	read func() (v T, revision uint64, err error) // revision 0: none is stored
	// put stores a value in place of a revision. ErrConflict: the stored revision is another.
	put func(revision uint64, v T) error
}

// update stores what change makes of the value if change returns true. It begins again after a conflict, at most maxConflicts
// times and a little later each time, so change may be called more than once.
func (s stored[T]) update(ctx context.Context, change func(v *T, isNew bool) (bool, error)) error {
	for try := range maxConflicts {
		v, revision, err := s.read()
		if err != nil {
			return err
		}
		changed, err := change(&v, revision == 0)
		if err != nil || !changed {
			return err
		}
		if err = s.put(revision, v); !errors.Is(err, ErrConflict) {
			return err
		}
		if err := pause(ctx, rand.N(time.Duration(min(try, 20)+1)*time.Millisecond)); err != nil {
			return err
		}
	}
	return fmt.Errorf("store: %w after %d tries", ErrConflict, maxConflicts)
}
