package runlog

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// Quotas knows whether a run that is parked for a quota may continue.
type Quotas interface {
	// Freed reports whether the limit of a park was raised, or taken away.
	Freed(ctx context.Context, run messages.Ref, p *record.Parked, now time.Time) (bool, error)
}

// free ends the park of a run whose quota allows it to continue before its time.
func (k *Controller) free(ctx context.Context, run messages.Ref, last record.Entry) (bool, error) {
	if k.Quotas == nil || last.Head.Waits != queue.ParkQuota {
		return false, nil
	}
	p, _, err := k.Park(ctx, run, last)
	if err != nil || p == nil {
		return false, err
	}
	freed, err := k.Quotas.Freed(ctx, run, p, k.Now())
	if err != nil {
		return false, fmt.Errorf("ask for the quota of %s: %w", run, err)
	}
	if !freed {
		return false, nil
	}
	e, err := k.append(ctx, run, last, &record.Expired{Park: last.Head.ParkSeq})
	if err != nil {
		return false, err
	}
	return true, k.wakeIfReady(ctx, run, &e)
}
