package webhooks

import (
	"sync/atomic"
)

// Stats count since New.
type Stats struct {
	Delivered uint64
	Failed    uint64 // attempts
	GivenUp   uint64 // webhooks that became dead letters
}

type counts struct{ delivered, failed, givenUp atomic.Uint64 }

// Stats may be called at any time.
func (ws *Webhooks) Stats() Stats {
	return Stats{ws.sent.delivered.Load(), ws.sent.failed.Load(), ws.sent.givenUp.Load()}
}
