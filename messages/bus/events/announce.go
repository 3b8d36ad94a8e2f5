package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// maxAnnounces bounds how often an event about no run races with those of other processes.
const maxAnnounces = 20

// Announce stores an event that is about no run, under messages.NoRun of the default tenant. Its number is the time in
// microseconds, or one more than that of the newest such event if this is not less: numbers grow, have gaps, and are
// not used again when old events are gone. It is stored at least once when this returns without an error.
func (st *Store) Announce(ctx context.Context, name string, data any) error {
	return st.AnnounceTo(ctx, messages.DefaultTenant, name, data)
}

// AnnounceTo is Announce under messages.NoRun of a tenant.
func (st *Store) AnnounceTo(ctx context.Context, tenant, name string, data any) error {
	run := messages.Ref{Tenant: tenant, Run: messages.NoRun}
	body, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", name, err)
	}
	select { // those of one process would only race for the numbers
	case st.announcing <- struct{}{}:
		defer func() { <-st.announcing }()
	case <-ctx.Done():
		return fmt.Errorf("announce %s: %w", name, context.Cause(ctx))
	}
	for n := range maxAnnounces {
		last, ok, err := st.of(run).Get(ctx, bus.Lookup{Last: run.EventFilter()})
		if err != nil {
			return fmt.Errorf("announce %s: %w", name, err)
		}
		now := time.Now().UTC()
		number := uint64(now.UnixMicro())
		if ok {
			if e, ok := st.bus.Event(last); ok {
				number = max(number, e.Number()+1)
			}
		}
		e := messages.Event{
			SpecVersion: "1.0", ID: messages.NoRun + "." + strconv.FormatUint(number, 10), Source: "/tenants/" + run.Tenant,
			Type: "longshore." + name + ".v1", Subject: run.Run, Time: now, DataContentType: "application/json",
			Sequence: strconv.FormatUint(number, 10), Data: body,
		}
		encoded, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode event %s: %w", name, err)
		}
		m := &nats.Msg{Subject: st.bus.Partitions(bus.StreamEvents).Subject(run, run.EventSubject(name)), Data: encoded, Header: nats.Header{
			bus.HeaderMsgID: {run.Tenant + "." + e.ID}, bus.HeaderExpectFor: {run.EventFilter()},
		}}
		bus.Expect(m, last.Seq)
		_, err = st.bus.Store(ctx, m)
		if bus.Refused(err, bus.CodeWrongLast) {
			_ = bus.Pause(ctx, bus.Backoff(n)) // another took the number; ctx shows in what follows
			continue
		}
		if err != nil {
			return fmt.Errorf("announce %s: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf("announce %s: other dispatchers keep publishing; try again", name)
}
