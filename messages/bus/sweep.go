package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
)

// sweepRun stands in the subjects of the sweep, which is for all runs.
var sweepRun = messages.Ref{Tenant: "_", Run: "sweep"} //nolint:gochecknoglobals // a constant

// ScheduleSweep asks for a sweep now and for one every so often from now on, at least a second. There is one such
// schedule, whoever set it last.
func (b *Bus) ScheduleSweep(ctx context.Context, every time.Duration) error {
	body, err := json.Marshal(messages.Wake{Errand: messages.ErrandSweep})
	if err != nil {
		return fmt.Errorf("encode errand: %w", err)
	}
	_, err = b.store(ctx, &nats.Msg{Subject: "sched.sweep", Data: body, Header: nats.Header{
		headerSchedule:   {"@every " + every.String()},
		headerScheduleTo: {sweepRun.WakeSubject()},
	}})
	if err != nil {
		return err
	}
	_, err = b.store(ctx, &nats.Msg{Subject: sweepRun.WakeSubject(), Data: body, Header: nats.Header{}})
	return err
}
