package bus_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

func TestSetupByManyAtOnce(t *testing.T) {
	nc := bustest.Connect(t, bustest.Start(t))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := bus.Setup(bustest.Context(t), nc, bus.Streams{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{}); err != nil {
		t.Errorf("again: %v", err)
	}
	if _, err := bus.Open(bustest.Context(t), nc, bus.Config{}); err != nil {
		t.Error(err)
	}
}

func TestOpenCreatesNothing(t *testing.T) {
	nc := bustest.Connect(t, bustest.Start(t))
	_, err := bus.Open(bustest.Context(t), nc, bus.Config{})
	if want := "stream TASKS does not exist: it is created by a dispatcher"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	for name := range bustest.NewJetStream(t, nc).StreamNames(bustest.Context(t)).Name() {
		t.Errorf("stream %s was created", name)
	}
}

func TestSetupRefusesOtherSettings(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		stream     string
		change     func(*jetstream.StreamConfig)
		streams    bus.Streams
	}{
		{
			"subjects", "stream RUNS: subjects is other.> runs.*.*.log, but must be runs.*.*.log", "RUNS",
			func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "other.>") },
			bus.Streams{},
		},
		{
			"max age", "stream RUNS: max_age is 1h0m0s, but must be 0s", "RUNS",
			func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
			bus.Streams{},
		},
		{
			"transform", "stream TASKS: subject_transform is , but must be tasks.*.*.* to lanes", "TASKS",
			func(c *jetstream.StreamConfig) { c.SubjectTransform = nil },
			bus.Streams{},
		},
		{"event age", "stream EVENTS: max_age is 336h0m0s, but must be 24h0m0s", "", nil, bus.Streams{EventMaxAge: 24 * time.Hour}},
		{"replicas", "stream TASKS: num_replicas is 1, but must be 3", "", nil, bus.Streams{Replicas: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, nc := bustest.OpenNew(t)
			if tt.change != nil {
				js := bustest.NewJetStream(t, nc)
				s, err := js.Stream(bustest.Context(t), tt.stream)
				if err != nil {
					t.Fatal(err)
				}
				cfg := s.CachedInfo().Config
				tt.change(&cfg)
				if _, err := js.UpdateStream(bustest.Context(t), cfg); err != nil {
					t.Fatal(err)
				}
			}
			err := bus.Setup(bustest.Context(t), nc, tt.streams)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "nats stream edit") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSetupUpdatesAckWait(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	tasks, err := taskqueue.New(b).Tasks(bustest.Context(t))
	if err != nil || tasks.AckWait != 30*time.Second {
		t.Fatalf("got %v, %v", tasks, err)
	}
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{AckWait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if tasks, err = taskqueue.New(b).Tasks(bustest.Context(t)); err != nil || tasks.AckWait != time.Minute {
		t.Errorf("got %v, %v, want 1m", tasks, err)
	}
}

func TestSetupRefusesAnotherConsumer(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	js := bustest.NewJetStream(t, nc)
	stream := bustest.QueueIn(b, bustest.Run())
	c, err := js.Consumer(bustest.Context(t), stream, bus.ConsumerWorkers)
	if err != nil {
		t.Fatal(err)
	}
	cfg := c.CachedInfo().Config
	cfg.MaxDeliver = 5
	if _, err := js.UpdateConsumer(bustest.Context(t), stream, cfg); err != nil {
		t.Fatal(err)
	}
	err = bus.Setup(bustest.Context(t), nc, bus.Streams{})
	if want := "consumer workers of stream " + stream + ": max_deliver is 5, but must be -1"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// An Inspector that is told no age accepts the one that each stream has.
func TestInspectorWithoutAges(t *testing.T) {
	nc := bustest.Connect(t, bustest.Start(t))
	ages := bus.Streams{EventMaxAge: 300 * time.Hour, DeadMaxAge: 400 * time.Hour, LogsMaxAge: 24 * time.Hour}
	if err := bus.Setup(bustest.Context(t), nc, ages); err != nil {
		t.Fatal(err)
	}
	i, err := bus.NewInspector(nc, bus.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range i.Streams() {
		if s, err := i.Stream(bustest.Context(t), name); err != nil || s.Wrong != nil {
			t.Errorf("%s: %v, %v", name, err, s.Wrong)
		}
	}
}

// A server whose disk has no room for what a stream reserves says in vain what it lacks: the error says what to do.
func TestSetupWithoutRoom(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.Start(t))
	err := bus.Setup(bustest.Context(t), nc, bus.Streams{LogsMaxBytes: 1 << 60})
	if !errors.Is(err, bus.ErrNoSpace) || !strings.Contains(err.Error(), bus.StreamLogs) {
		t.Errorf("got %v, want ErrNoSpace of %s", err, bus.StreamLogs)
	}
}
