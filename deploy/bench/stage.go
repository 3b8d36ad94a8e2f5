package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
)

// ackWait is that of the fleet by default.
const ackWait = 30 * time.Second

// driverName is the name of the driver's connection.
const driverName = "bench driver"

// stage is what a worker and a backend need: servers, streams, a dispatcher and its client.
type stage struct {
	dir        string   // of the servers' and the runs' files
	servers    *process // nil when they are in this process
	ready      serversReady
	nc         *nats.Conn
	house      *bus.Bus
	client     *dispatcher.Client
	dispatcher *background
}

// openStage starts fresh servers, and the rest in this process. The servers write a CPU profile, if a file is given.
func (b *bench) openStage(ctx context.Context, profile string) (*stage, error) {
	s := &stage{}
	if err := s.open(ctx, b, profile); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) open(ctx context.Context, b *bench, profile string) (err error) {
	if s.dir, err = os.MkdirTemp(b.dir, "stage-"); err != nil {
		return fmt.Errorf("make temporary folder: %w", err)
	}
	s.servers, err = b.spawn(ctx, roleServers, serversConfig{Dir: filepath.Join(s.dir, "servers"), Profile: profile}, &s.ready)
	if err != nil {
		return err
	}
	if s.nc, err = bus.Connect(ctx, bus.ConnConfig{URL: s.ready.NATSURL, Name: driverName, Log: b.log}); err != nil {
		return err
	}
	return s.dispatch(ctx, b.log)
}

// worker is the setup of a worker on this stage.
func (s *stage) worker(slots int) workerConfig {
	return workerConfig{NATSURL: s.ready.NATSURL, RedisURL: s.ready.RedisURL, Dir: filepath.Join(s.dir, "files"), Slots: slots}
}

// dispatch sets up the streams and runs a dispatcher on the stage's connection.
func (s *stage) dispatch(ctx context.Context, log *slog.Logger) error {
	if err := bus.Setup(ctx, s.nc, bus.Streams{}); err != nil {
		return err
	}
	house, err := bus.Open(ctx, s.nc, bus.Config{Log: log})
	if err != nil {
		return err
	}
	s.house = house
	lane := queue.Lane{Priority: messages.PriorityNormal, Tenant: messages.DefaultTenant}
	if err := taskqueue.New(house).MakeLane(ctx, lane, ackWait); err != nil { // the floor makes none
		return err
	}
	ring, err := keys(house)
	if err != nil {
		return err
	}
	svc := service.New(service.Config{
		Conn: s.nc, Bus: house, Controller: controller(house, ring), Agents: agents(), Version: "0.0.0", Log: log,
	})
	s.dispatcher = runInBackground(ctx, svc.Run)
	select {
	case <-svc.Ready():
	case <-s.dispatcher.ended:
		return fmt.Errorf("run dispatcher: %w", s.dispatcher.err)
	}
	s.client, err = dispatcher.New(ctx, s.nc)
	return err
}

func (s *stage) close() error {
	var errs []error
	if s.dispatcher != nil {
		errs = append(errs, s.dispatcher.stop())
	}
	if s.nc != nil {
		s.nc.Close()
	}
	if s.servers != nil {
		errs = append(errs, s.servers.stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// fill submits tasks, many at once, and returns how long that took.
func (s *stage) fill(ctx context.Context, tasks, submitters int) (time.Duration, error) {
	return fillWith(ctx, tasks, submitters, func(ctx context.Context) error {
		_, err := s.client.Submit(ctx, task())
		return err
	})
}

// fillWith submits tasks, many at once, each with one call of submit.
func fillWith(ctx context.Context, tasks, submitters int, submit func(context.Context) error) (time.Duration, error) {
	next := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	group.Go(func() error {
		defer close(next)
		for range tasks {
			select {
			case next <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range submitters {
		group.Go(func() error {
			for range next {
				if err := submit(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return time.Since(begun), err
}

// background is something that runs until it is stopped.
type background struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once it has ended
}

func runInBackground(ctx context.Context, f func(context.Context) error) *background {
	ctx, cancel := context.WithCancel(ctx)
	b := &background{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(b.ended)
		b.err = f(ctx)
	}()
	return b
}

func (b *background) stop() error {
	b.cancel()
	<-b.ended
	return b.err
}
