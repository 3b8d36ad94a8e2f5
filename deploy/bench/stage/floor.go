package stage

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

	"github.com/longshore-run/longshore/deploy/bench/measure"
)

// FloorName is the name of the floor's connection.
const FloorName = "bench floor"

// FloorConfig is the setup of the floor.
type FloorConfig struct {
	NATSURL  string `json:"natsUrl"`
	RedisURL string `json:"redisUrl"` // empty: no states are written
	Slots    int    `json:"slots"`
	Shape    Shape  `json:"shape"`
	Profile  string `json:"profile,omitempty"`
}

// Floor is what a run sends and waits for, with the client libraries alone. Nothing of Longshore is used here.
type Floor struct {
	nc     *nats.Conn
	rdb    *redis.Client
	slots  int
	shape  Shape
	filler []byte
	states chan string // keys to be written to Redis
}

// NewFloor makes one; Run works. Without rdb no states are written.
func NewFloor(nc *nats.Conn, rdb *redis.Client, slots int, shape Shape) *Floor {
	f := &Floor{nc: nc, rdb: rdb, slots: slots, shape: shape, filler: make([]byte, 1<<20), states: make(chan string, 4096)}
	if rdb == nil {
		f.shape.States = 0
	}
	for i := range f.filler {
		f.filler[i] = 'a' + byte(i%26)
	}
	return f
}

// floorRole is the floor in a process of its own.
type floorRole struct {
	nc      *nats.Conn
	rdb     *redis.Client
	floor   *Floor
	profile func() error
	work    *measure.Background
}

func (f *floorRole) Setup(_ context.Context, args json.RawMessage) (any, error) {
	var cfg FloorConfig
	err := json.Unmarshal(args, &cfg)
	if err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	if f.nc, err = nats.Connect(cfg.NATSURL, nats.Name(FloorName)); err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if cfg.RedisURL != "" {
		opts, err := redis.ParseURL(cfg.RedisURL)
		if err != nil {
			return nil, fmt.Errorf("read Redis URL: %w", err)
		}
		f.rdb = redis.NewClient(opts)
	}
	f.floor = NewFloor(f.nc, f.rdb, cfg.Slots, cfg.Shape)
	f.profile, err = measure.Profile(cfg.Profile)
	return nil, err
}

func (f *floorRole) Start(ctx context.Context) error {
	f.work = measure.InBackground(ctx, f.floor.Run)
	return nil
}

func (*floorRole) Usage(context.Context) (measure.Usage, error) { return measure.OwnUsage() }

func (f *floorRole) Stop() error {
	var errs []error
	if f.work != nil {
		errs = append(errs, f.work.Stop())
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

// Run works tasks until ctx ends.
func (f *Floor) Run(ctx context.Context) error {
	js, err := jetstream.New(f.nc)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	consumer, err := js.Consumer(ctx, "TASKS", "lane_normal_default")
	if err != nil {
		return fmt.Errorf("open consumer: %w", err)
	}
	tasks, err := consumer.Messages(jetstream.PullMaxMessages(f.slots))
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
	if f.rdb != nil {
		group.Go(func() error { return f.write(work) })
	}
	for range f.slots {
		group.Go(func() error { return f.slot(work, in) })
	}
	err = group.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// slot works one task after the other.
func (f *Floor) slot(ctx context.Context, in <-chan jetstream.Msg) error {
	inbox := f.nc.NewInbox()
	acks := make(chan *nats.Msg, f.shape.EventCount())
	sub, err := f.nc.ChanSubscribe(inbox, acks)
	if err != nil {
		return fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	owed := 0.0
	for m := range in {
		owed += f.shape.States
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
	*Floor
	inbox  string
	acks   chan *nats.Msg
	run    string // tenant.run
	states int
}

// work appends, publishes and acks. The last event is that of the end: it waits for those before it.
func (r *floorRun) work(ctx context.Context, task jetstream.Msg) error {
	var last, number uint64
	flying := 0
	for i, a := range r.shape.Appends {
		seq, err := r.request(ctx, "runs."+r.run+".log", nats.Header{
			"Longshore-Head": {string(r.filler[:a.Header])}, jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(last, 10)},
		}, a.Data)
		if err != nil {
			return err
		}
		last = seq
		if i < r.states {
			r.Floor.states <- r.run
		}
		for j, e := range a.Events {
			number++
			if i == len(r.shape.Appends)-1 && j == len(a.Events)-1 {
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
func (f *Floor) write(ctx context.Context) error {
	for {
		pipe := f.rdb.Pipeline()
		select {
		case <-ctx.Done():
			return nil
		case key := <-f.states:
			pipe.Set(ctx, key, f.filler[:f.shape.StateBytes], floorTTL)
		}
		for more := true; more && pipe.Len() < floorBatch; {
			select {
			case key := <-f.states:
				pipe.Set(ctx, key, f.filler[:f.shape.StateBytes], floorTTL)
			default:
				more = false
			}
		}
		if _, err := pipe.Exec(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("write states: %w", err)
		}
	}
}
