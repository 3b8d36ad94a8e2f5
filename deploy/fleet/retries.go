package fleet

import (
	"maps"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/messages"
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

// all has a number for each code that may be: a rate is only seen of what was 0 before.
func (r *retries) all() map[string]uint64 {
	all := map[string]uint64{}
	for code, again := range messages.Codes() {
		if again && strings.HasPrefix(string(code), "model_") {
			all[string(code)] = 0
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(all, r.by)
	return all
}
