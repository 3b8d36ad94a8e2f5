package kv

import (
	"context"
	"iter"
)

// Eraser is a Store that can say what it keeps, and forget it.
type Eraser interface {
	// Scopes yields each scope of a run or a session of which something is kept, some of them more than once.
	Scopes(ctx context.Context) iter.Seq2[Scope, error]
	// Erase removes all that is kept of a scope, its revisions and its record of calls too.
	Erase(ctx context.Context, s Scope) error
}

// maxAsked bounds how many scopes a Sweep remembers that it asked about.
const maxAsked = 10_000

// Sweep erases the scopes of runs and sessions that are gone, and returns how many. Values of a tenant's scope end by their time alone.
func Sweep(ctx context.Context, store Eraser, gone func(context.Context, Scope) (bool, error)) (erased int, err error) {
	asked := map[Scope]bool{}
	for s, err := range store.Scopes(ctx) {
		if err != nil {
			return erased, err
		}
		if asked[s] {
			continue
		}
		if len(asked) >= maxAsked {
			clear(asked)
		}
		asked[s] = true
		is, err := gone(ctx, s)
		if err != nil {
			return erased, err
		}
		if !is {
			continue
		}
		if err := store.Erase(ctx, s); err != nil {
			return erased, err
		}
		erased++
	}
	return erased, nil
}
