package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// floorName is the name of the floor's connection.
const floorName = "bench floor"

// floorConfig is the setup of the floor.
type floorConfig struct {
	NATSURL  string `json:"natsUrl"`
	RedisURL string `json:"redisUrl"`
	Slots    int    `json:"slots"`
	Shape    shape  `json:"shape"`
	Profile  string `json:"profile,omitempty"`
}

// floorRole is the floor in a process of its own: what a run sends and waits for, with the client libraries alone.
// Nothing of Longshore is used here.
type floorRole struct {
	cfg     floorConfig
	nc      *nats.Conn
	rdb     *redis.Client
	filler  []byte
	states  chan string // keys to be written to Redis
	profile func() error
	work    *background
}

func (f *floorRole) setup(_ context.Context, args json.RawMessage) (any, error) {
	err := json.Unmarshal(args, &f.cfg)
	if err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	if f.nc, err = nats.Connect(f.cfg.NATSURL, nats.Name(floorName)); err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	opts, err := redis.ParseURL(f.cfg.RedisURL)
	if err != nil {
		return nil, fmt.Errorf("read Redis URL: %w", err)
	}
	f.rdb = redis.NewClient(opts)
	f.filler = make([]byte, 1<<20)
	for i := range f.filler {
		f.filler[i] = 'a' + byte(i%26)
	}
	f.states = make(chan string, 4096)
	f.profile, err = profile(f.cfg.Profile)
	return nil, err
}

func (f *floorRole) start(ctx context.Context) error {
	f.work = runInBackground(ctx, f.run)
	return nil
}

func (*floorRole) usage(context.Context) (usage, error) { return ownUsage() }

func (f *floorRole) stop() error {
	var errs []error
	if f.work != nil {
		errs = append(errs, f.work.stop())
	}
	if f.profile != nil {
		errs = append(errs, f.profile())
	}
	if f.rdb != nil {
		errs = append(errs, f.rdb.Close())
	}
	if f.nc != nil {
		f.nc.Close()
	}
	return errors.Join(errs...)
}

// run works tasks until ctx ends.
func (f *floorRole) run(ctx context.Context) error {
	js, err := jetstream.New(f.nc)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	consumer, err := js.Consumer(ctx, "TASKS", "lane_normal_default")
	if err != nil {
		return fmt.Errorf("open consumer: %w", err)
	}
	tasks, err := consumer.Messages(jetstream.PullMaxMessages(f.cfg.Slots))
	if err != nil {
		return fmt.Errorf("pull tasks: %w", err)
	}
	stop := context.AfterFunc(ctx, tasks.Stop)
	defer stop()
	group, work := errgroup.WithContext(ctx)
	in := make(chan jetstream.Msg)
	group.Go(func() error {
		defer close(in)
		for {
			m, err := tasks.Next()
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return fmt.Errorf("pull tasks: %w", err)
			}
			select {
			case in <- m:
			case <-work.Done():
				return nil
			}
		}
	})
	group.Go(func() error { return f.write(work) })
	for range f.cfg.Slots {
		group.Go(func() error { return f.slot(work, in) })
	}
	err = group.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// slot works one task after the other.
func (f *floorRole) slot(ctx context.Context, in <-chan jetstream.Msg) error {
	inbox := f.nc.NewInbox()
	acks := make(chan *nats.Msg, f.cfg.Shape.events())
	sub, err := f.nc.ChanSubscribe(inbox, acks)
	if err != nil {
		return fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	owed := 0.0
	for m := range in {
		owed += f.cfg.Shape.States
		n := int(owed)
		owed -= float64(n)
		r := floorRun{f, inbox, acks, strings.Join(strings.Split(m.Subject(), ".")[3:], "."), n}
		if err := r.work(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// floorRun is one run.
type floorRun struct {
	*floorRole
	inbox  string
	acks   chan *nats.Msg
	run    string // tenant.run
	states int
}

// work appends, publishes and acks. The last event is that of the end: it waits for those before it.
func (r *floorRun) work(ctx context.Context, task jetstream.Msg) error {
	var last, number uint64
	flying := 0
	for i, a := range r.cfg.Shape.Appends {
		seq, err := r.request(ctx, "runs."+r.run+".log", nats.Header{
			"Longshore-Head": {string(r.filler[:a.Header])}, jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(last, 10)},
		}, a.Data)
		if err != nil {
			return err
		}
		last = seq
		if i < r.states {
			r.floorRole.states <- r.run
		}
		for j, e := range a.Events {
			number++
			if i == len(r.cfg.Shape.Appends)-1 && j == len(a.Events)-1 {
				return r.end(ctx, task, e, number, flying)
			}
			if err := r.publish(e, number); err != nil {
				return err
			}
			flying++
		}
	}
	return nil
}

func (r *floorRun) end(ctx context.Context, task jetstream.Msg, e eventShape, number uint64, flying int) error {
	for range flying {
		select {
		case m := <-r.acks:
			if err := refusal(m); err != nil {
				return fmt.Errorf("publish event: %w", err)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	h := nats.Header{jetstream.MsgIDHeader: {r.id(number)}, jetstream.ExpectedLastSubjSeqHeader: {"0"}}
	if _, err := r.request(ctx, r.subject(e), h, e.Data); err != nil {
		return err
	}
	return task.DoubleAck(ctx)
}

func (r *floorRun) subject(e eventShape) string { return "events." + r.run + "." + e.Name }

func (r *floorRun) id(number uint64) string { return r.run + "." + strconv.FormatUint(number, 10) }

func (r *floorRun) publish(e eventShape, number uint64) error {
	err := r.nc.PublishMsg(&nats.Msg{
		Subject: r.subject(e), Reply: r.inbox, Header: nats.Header{jetstream.MsgIDHeader: {r.id(number)}}, Data: r.filler[:e.Data],
	})
	if err != nil {
		return fmt.Errorf("publish event: %w", err)
	}
	return nil
}

// floorTimeout bounds one request.
const floorTimeout = 10 * time.Second

// request stores a message and returns its sequence.
func (r *floorRun) request(ctx context.Context, subject string, h nats.Header, size int) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, floorTimeout)
	defer cancel()
	m, err := r.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Header: h, Data: r.filler[:size]})
	if err != nil {
		return 0, fmt.Errorf("store %s: %w", subject, err)
	}
	var ack struct {
		Seq   uint64              `json:"seq"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return 0, fmt.Errorf("store %s: %w", subject, err)
	}
	if ack.Error != nil {
		return 0, fmt.Errorf("store %s: %w", subject, ack.Error)
	}
	return ack.Seq, nil
}

func refusal(m *nats.Msg) error {
	if strings.Contains(string(m.Data), `"error"`) || len(m.Data) == 0 {
		return fmt.Errorf("refused: %.200q", m.Data)
	}
	return nil
}

const (
	floorBatch = 64
	floorTTL   = 24 * time.Hour
)

// write writes states to Redis, as many at once as have come.
func (f *floorRole) write(ctx context.Context) error {
	for {
		pipe := f.rdb.Pipeline()
		select {
		case <-ctx.Done():
			return nil
		case key := <-f.states:
			pipe.Set(ctx, key, f.filler[:f.cfg.Shape.StateBytes], floorTTL)
		}
		for more := true; more && pipe.Len() < floorBatch; {
			select {
			case key := <-f.states:
				pipe.Set(ctx, key, f.filler[:f.cfg.Shape.StateBytes], floorTTL)
			default:
				more = false
			}
		}
		if _, err := pipe.Exec(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("write states: %w", err)
		}
	}
}
