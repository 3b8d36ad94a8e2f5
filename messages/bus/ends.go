package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

const (
	consumerEnds = "ends"
	endsFetched  = 64
	endsFetch    = 5 * time.Second
	endsAckWait  = 5 * time.Second // to take an end is a few publishes
	endsPause    = time.Second
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
	if json.Unmarshal(e.Event, &event) != nil || !isOf(&event, e.Run, messages.EventRunFinished) || json.Unmarshal(event.Data, d) != nil {
		return nil, false
	}
	d.Result.ID = e.Run.Run
	return d, true
}

// RunEnds hands the end of each run to take, at least once, until ctx ends. One consumer is shared by all dispatchers;
// an end whose take failed comes again.
func (b *Bus) RunEnds(ctx context.Context, take func(context.Context, RunEnd) error) error {
	js, err := newJetStream(b.nc)
	if err != nil {
		return err
	}
	cfg := jetstream.ConsumerConfig{
		Durable: consumerEnds, FilterSubject: "events.*.*." + messages.EventRunFinished,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: endsAckWait, MaxDeliver: -1,
	}
	cons, err := js.CreateOrUpdateConsumer(ctx, StreamEvents, cfg)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("create consumer %s: %w", consumerEnds, err)
	}
	for ctx.Err() == nil {
		if b.nextEnds(ctx, cons, take) {
			continue
		}
		_ = pause(ctx, endsPause)                                                        // cut short by the end of ctx
		if again, err := js.CreateOrUpdateConsumer(ctx, StreamEvents, cfg); err == nil { // somebody may have removed it
			cons = again
		}
	}
	return nil
}

// nextEnds takes the ends that are there. It is false when the server was no help, or an end could not be taken.
func (b *Bus) nextEnds(ctx context.Context, cons jetstream.Consumer, take func(context.Context, RunEnd) error) bool {
	fetch, cancel := context.WithTimeout(ctx, endsFetch)
	defer cancel()
	batch, err := cons.Fetch(endsFetched, jetstream.FetchContext(fetch))
	if err != nil {
		if ctx.Err() == nil {
			b.log.WarnContext(ctx, "look for ends of runs", "err", err)
		}
		return false
	}
	ok := true
	for m := range batch.Messages() {
		if run, named := messages.RunOfEvent(m.Subject()); named {
			err = take(ctx, RunEnd{run, m.Data()})
		}
		if err != nil {
			ok = false
			if ctx.Err() == nil {
				b.log.WarnContext(ctx, "take the end of a run", "subject", m.Subject(), "err", err)
			}
			_ = m.NakWithDelay(endAgain(m)) // without it the end comes again after the ack wait
			err = nil
			continue
		}
		if err := m.Ack(); err != nil {
			b.log.DebugContext(ctx, "ack the end of a run", "err", err)
		}
	}
	err = batch.Error()
	return ok && (err == nil || errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded))
}

// endAgain is when an end comes again that could not be taken: the later the more often that was tried.
func endAgain(m jetstream.Msg) time.Duration {
	meta, err := m.Metadata()
	if err != nil {
		return endsPause
	}
	return endsPause * time.Duration(min(meta.NumDelivered, maxEndPauses))
}

// Foreign counts a message on a subject of ours that is not what the subject says.
func (b *Bus) Foreign() { b.skipped.Add(1) }
