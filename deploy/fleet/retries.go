package fleet

import (
	"maps"
	"sync"

	"github.com/longshore-run/longshore/worker/model"
)

// retries counts the retries of model calls by code. The zero value is ready.
type retries struct {
	mu sync.Mutex
	by map[string]uint64
}

func (r *retries) count(failed model.Retried) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]uint64{}
	}
	r.by[string(failed.Err.Code())]++
}

func (r *retries) all() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.by)
}
