package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages/queue"
)

// ErrMissing means that a stream or the consumer of wake-ups does not exist.
var ErrMissing = errors.New("does not exist")

// ErrOld means that the server cannot do what the protocol needs.
var ErrOld = errors.New("NATS server too old")

// Inspector looks at what Setup makes, and changes nothing.
type Inspector struct {
	js   jetstream.JetStream
	nc   *nats.Conn
	want Streams
}

// NewInspector returns an Inspector that compares with what Setup would want. Zero fields of Streams fit whatever is there.
func NewInspector(nc *nats.Conn, want Streams) (*Inspector, error) {
	js, err := NewJetStream(nc)
	if err != nil {
		return nil, err
	}
	return &Inspector{js, nc, want}, nil
}

// Account is what JetStream tells of the account. With ErrOld it is there too.
func (i *Inspector) Account(ctx context.Context) (*jetstream.AccountInfo, error) {
	info, err := i.js.AccountInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask NATS for its abilities: %w", err)
	}
	if info.API.Level < minLevel {
		return info, fmt.Errorf("%w: needs %s, has %s", ErrOld, minVersion, i.nc.ConnectedServerVersion())
	}
	return info, nil
}

// Streams are the names of those that Setup makes.
func (i *Inspector) Streams() []string {
	var names []string
	for _, c := range i.want.configs() {
		names = append(names, c.Name)
	}
	return names
}

// StreamState is how a stream is.
type StreamState struct {
	*jetstream.StreamInfo

	Wrong error         // what Setup would refuse, or change; nil: nothing
	Asked time.Time     // when the server was asked, by this machine's clock
	Took  time.Duration // until it answered; StreamInfo.TimeStamp is the server's time in between
}

// Stream looks at one of Streams. ErrMissing.
func (i *Inspector) Stream(ctx context.Context, name string) (*StreamState, error) {
	s := &StreamState{Asked: time.Now()}
	stream, err := i.js.Stream(ctx, name)
	s.Took = time.Since(s.Asked)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("stream %s %w", name, ErrMissing)
	case err != nil:
		return nil, fmt.Errorf("look at stream %s: %w", name, err)
	}
	s.StreamInfo = stream.CachedInfo()
	for _, want := range i.want.configs() {
		if want.Name == name {
			s.Wrong = i.compare(want, s.Config)
		}
	}
	return s, nil
}

func (i *Inspector) compare(want, has jetstream.StreamConfig) error {
	if strings.HasPrefix(want.Name, StreamEvents) && i.want.EventMaxAge == 0 || want.Name == StreamDead && i.want.DeadMaxAge == 0 || want.Name == StreamLogs && i.want.LogsMaxAge == 0 {
		want.MaxAge = has.MaxAge
	}
	if isTasks(want.Name) {
		if !reflect.DeepEqual(want.RePublish, has.RePublish) || has.MaxConsumers < want.MaxConsumers {
			return fmt.Errorf("stream %s is as an earlier version made it: a dispatcher of this version changes that when it starts", want.Name)
		}
		want.MaxConsumers = has.MaxConsumers
	}
	return checkStream(want, has, i.want.Replicas > 0)
}

// Wakes looks at the consumers of wake-ups, one in each partition of the queue. ErrMissing; another error says what is wrong with one.
func (i *Inspector) Wakes(ctx context.Context) error {
	all := divide(i.want.tasks(), i.want.Division[StreamTasks])
	for in := range all {
		stream := all[in].Name
		c, err := i.js.Consumer(ctx, stream, ConsumerWorkers)
		switch {
		case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
			return fmt.Errorf("consumer %s of %s %w", ConsumerWorkers, stream, ErrMissing)
		case err != nil:
			return fmt.Errorf("look at consumer %s of %s: %w", ConsumerWorkers, stream, err)
		}
		has := c.CachedInfo().Config
		want := LaneConfig(queue.WakeLane().In(in), len(all), cmp.Or(i.want.AckWait, has.AckWait))
		if err := checkConsumer(stream, want, has); err != nil {
			return err
		}
	}
	return nil
}

// Store stores a small message in place of the last one that it, or a dispatcher's look at the storage, stored. ErrNoSpace;
// context.DeadlineExceeded when the server does not acknowledge it.
func (i *Inspector) Store(ctx context.Context) error {
	m, err := i.nc.RequestWithContext(ctx, storageProbe, make([]byte, probeSize))
	if err == nil {
		_, err = decodeReceipt(m.Data)
	}
	if noSpace(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}
