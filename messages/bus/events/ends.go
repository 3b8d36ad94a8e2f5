package events

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

const (
	endsFetched  = 64              // of all streams together: the last of them waits for the others within the ack wait
	endsAckWait  = 5 * time.Second // to take an end is a few publishes
	maxEndPauses = 60
)

// RunEnd is the end of a run as its event tells it.
type RunEnd struct {
	Run   messages.Ref
	Event []byte // run_finished as it is stored
}

// hintWebhook stands in the event of a run whose task has a webhook. In a text the quotes would be escaped.
const hintWebhook = `"webhook":true`

// HasWebhook is a look that costs nothing, and says of some without that they may have one.
func (e *RunEnd) HasWebhook() bool { return bytes.Contains(e.Event, []byte(hintWebhook)) }

// Finished is the data of the event; ok is false when it is not the end of that run.
func (e *RunEnd) Finished() (d *messages.RunFinished, ok bool) {
	var event messages.Event
	d = &messages.RunFinished{}
	if json.Unmarshal(e.Event, &event) != nil || !bus.IsOf(&event, e.Run, messages.EventRunFinished) || json.Unmarshal(event.Data, d) != nil {
		return nil, false
	}
	d.Result.ID = e.Run.Run
	return d, true
}

// RunEnds hands the end of each run to take, at least once, until ctx ends. One consumer is shared by all dispatchers;
// an end whose take failed comes again. It is called for one end at a time.
func (st *Store) RunEnds(ctx context.Context, take func(context.Context, RunEnd) error) error {
	var one sync.Mutex
	all := st.bus.Partitions(bus.StreamEvents)
	p := bus.Puller{
		Bus: st.bus, Most: max(1, endsFetched/all.Len()),
		Config: jetstream.ConsumerConfig{
			Durable: bus.ConsumerEnds, FilterSubject: "events.*.*." + messages.EventRunFinished,
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: endsAckWait, MaxDeliver: -1,
		},
		Take: func(ctx context.Context, msgs <-chan jetstream.Msg) bool {
			ok := true
			for m := range msgs {
				one.Lock()
				ok = st.takeEnd(ctx, all, m, take) && ok
				one.Unlock()
			}
			return ok
		},
	}
	return p.RunAcross(ctx, all)
}

func (st *Store) takeEnd(ctx context.Context, in bus.Partitions, m jetstream.Msg, take func(context.Context, RunEnd) error) bool {
	if run, named := messages.RunOfEvent(m.Subject()); named && !isStray(in, m) {
		if err := take(ctx, RunEnd{run, m.Data()}); err != nil {
			if ctx.Err() == nil {
				st.bus.Log().WarnContext(ctx, "take the end of a run", "subject", m.Subject(), "err", err)
			}
			_ = m.NakWithDelay(endAgain(m)) // without it the end comes again after the ack wait
			return false
		}
	}
	if err := m.Ack(); err != nil {
		st.bus.Log().DebugContext(ctx, "ack the end of a run", "err", err)
	}
	return true
}

// isStray reports whether a message of a consumer is in a stream in which its run is not.
func isStray(in bus.Partitions, m jetstream.Msg) bool {
	if !in.Divided() {
		return false
	}
	meta, err := m.Metadata()
	return err != nil || !in.OwnsSubject(meta.Stream, m.Subject())
}

// endAgain is when an end comes again that could not be taken: the later the more often that was tried.
func endAgain(m jetstream.Msg) time.Duration {
	meta, err := m.Metadata()
	if err != nil {
		return bus.PullPause
	}
	return bus.PullPause * time.Duration(min(meta.NumDelivered, maxEndPauses))
}
