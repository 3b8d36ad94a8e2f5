package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

const pullFetch = 5 * time.Second

// PullPause is the wait before what could not be done is tried again.
const PullPause = time.Second

// Puller takes messages from a durable consumer that dispatchers share. A dispatcher that is killed leaves its messages to
// another one, after the ack wait.
type Puller struct {
	Bus    *Bus
	Stream string
	Config jetstream.ConsumerConfig
	Most   int // how many are fetched at a time
	// room, if it is set, waits until there is room, and says for how many.
	Room func(ctx context.Context) int
	// take sees to each message itself. False: not all could be taken, and it has said why; what follows waits for a moment.
	Take func(ctx context.Context, msgs <-chan jetstream.Msg) bool
}

// Run takes messages until ctx ends. An error says that the consumer could not be made to begin with. Later it is made again
// after any failure: the consumer, or its stream, may have been removed.
func (p *Puller) Run(ctx context.Context) error {
	cons, err := p.Consumer(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // that is why
		}
		return err
	}
	p.Follow(ctx, cons)
	return nil
}

// RunAcross is Run of a consumer in each of several streams. Take and Room are called for several at once.
func (p *Puller) RunAcross(ctx context.Context, in Partitions) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range in.Names() {
		of := *p
		of.Stream = name
		group.Go(func() error { return of.Run(ctx) })
	}
	return group.Wait()
}

// Consumer makes the durable consumer, or finds it.
func (p *Puller) Consumer(ctx context.Context) (jetstream.Consumer, error) {
	js, err := NewJetStream(p.Bus.nc)
	if err != nil {
		return nil, err
	}
	cons, err := js.CreateOrUpdateConsumer(ctx, p.Stream, p.Config)
	if err != nil {
		return nil, fmt.Errorf("create consumer %s: %w", p.Config.Durable, err)
	}
	return cons, nil
}

// Follow takes messages from a consumer until ctx ends, and makes the consumer again when it is gone.
func (p *Puller) Follow(ctx context.Context, cons jetstream.Consumer) {
	for ctx.Err() == nil {
		ok, err := p.next(ctx, cons)
		if ok {
			continue
		}
		if err != nil && ctx.Err() == nil {
			p.Bus.log.WarnContext(ctx, "fetch messages", "consumer", p.Config.Durable, "err", err)
		}
		_ = Pause(ctx, PullPause) // cut short by the end of ctx
		if again, err := p.Consumer(ctx); err == nil {
			cons = again
		}
	}
}

// next takes the messages that have arrived, and those that arrive meanwhile. The error is the server's.
func (p *Puller) next(ctx context.Context, cons jetstream.Consumer) (ok bool, _ error) {
	most := p.Most
	if p.Room != nil {
		if most = min(most, p.Room(ctx)); ctx.Err() != nil {
			return false, nil
		}
	}
	fetch, cancel := context.WithTimeout(ctx, pullFetch)
	defer cancel()
	batch, err := cons.Fetch(most, jetstream.FetchContext(fetch))
	if err != nil {
		return false, err
	}
	ok = p.Take(ctx, batch.Messages())
	if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) {
		return false, err
	}
	return ok, nil
}
