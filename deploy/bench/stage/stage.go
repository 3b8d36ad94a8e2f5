package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
)

// ackWait is that of the fleet by default.
const ackWait = 30 * time.Second

// DriverName is the name of the driver's connection.
const DriverName = "bench driver"

// Stage is what a worker and a backend need: servers, streams, a dispatcher and its client.
type Stage struct {
	Env     Env              // that it was opened with
	Dir     string           // of the servers' and the runs' files
	Servers *measure.Process // nil when they are in this process
	Ready   ServersReady
	Conn    *nats.Conn
	Bus     *bus.Bus
	Client  *dispatcher.Client
	Bundled bool // what Retain stores

	dispatcher *measure.Background
}

// Open starts fresh servers in a folder of their own below dir, and the rest in this process. The servers write a CPU profile, if a file
// is given. Close ends all.
func (e Env) Open(ctx context.Context, dir, profile string) (*Stage, error) {
	s := &Stage{Env: e}
	err := s.serve(ctx, e, dir, profile)
	if err == nil {
		err = s.Dispatch(ctx, e)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenServers starts fresh servers in a folder of their own below dir, and makes the streams.
func (e Env) OpenServers(ctx context.Context, dir string) (*Stage, error) {
	s := &Stage{Env: e, Bundled: e.bundles()}
	err := s.serve(ctx, e, dir, "")
	if err == nil {
		err = e.setup(ctx, s.Conn)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// RestartServers stops the servers, and starts them again on what they have stored. It returns how long they took to be ready.
func (s *Stage) RestartServers(ctx context.Context, e Env) (time.Duration, error) {
	s.Conn.Close()
	if err := s.Servers.Stop(); err != nil {
		return 0, err
	}
	begun := time.Now()
	err := s.startServers(ctx, e, "")
	return time.Since(begun), err
}

// serve makes the folder and starts the servers.
func (s *Stage) serve(ctx context.Context, e Env, dir, profile string) (err error) {
	if s.Dir, err = os.MkdirTemp(dir, "stage-"); err != nil {
		return fmt.Errorf("make temporary folder: %w", err)
	}
	return s.startServers(ctx, e, profile)
}

// startServers starts the servers on what is in their folder, and connects the driver to them.
func (s *Stage) startServers(ctx context.Context, e Env, profile string) (err error) {
	cfg := ServersConfig{Dir: filepath.Join(s.Dir, "servers"), Replicas: e.Replicas, Profile: profile}
	if s.Servers, err = measure.Spawn(ctx, RoleServers, cfg, &s.Ready); err != nil {
		return err
	}
	s.Conn, err = bus.Connect(ctx, bus.ConnConfig{URL: s.Ready.NATSURL, Name: DriverName, Log: e.Log})
	return err
}

// Worker is the setup of a worker on this stage.
func (s *Stage) Worker(slots int) WorkerConfig {
	return WorkerConfig{NATSURL: s.Ready.NATSURL, RedisURL: s.Ready.RedisURL, Dir: filepath.Join(s.Dir, "files"), Slots: slots}
}

// Dispatch sets up the streams and runs a dispatcher on the stage's connection.
func (s *Stage) Dispatch(ctx context.Context, e Env) error {
	if err := e.setup(ctx, s.Conn); err != nil {
		return err
	}
	house, err := bus.Open(ctx, s.Conn, bus.Config{Log: e.Log, Direct: true})
	if err != nil {
		return err
	}
	s.Bus = house
	for in := range house.Partitions(bus.StreamTasks).Number() { // the floor makes none
		lane := queue.Lane{Priority: messages.PriorityNormal, Tenant: messages.DefaultTenant}
		if err := taskqueue.New(house).MakeLane(ctx, lane.In(in), ackWait); err != nil {
			return err
		}
	}
	ring, err := e.keys(house)
	if err != nil {
		return err
	}
	svc := service.New(service.Config{
		Conn: s.Conn, Bus: house, Controller: e.controller(house, ring), Agents: Agents(), Version: "0.0.0", Log: e.Log,
	})
	s.dispatcher = measure.InBackground(ctx, svc.Run)
	select {
	case <-svc.Ready():
	case <-s.dispatcher.Ended():
		return fmt.Errorf("run dispatcher: %w", s.dispatcher.Err())
	}
	s.Client, err = dispatcher.New(ctx, s.Conn)
	return err
}

// Close ends what was started, and removes its files.
func (s *Stage) Close() error {
	var errs []error
	if s.dispatcher != nil {
		errs = append(errs, s.dispatcher.Stop())
	}
	if s.Conn != nil {
		s.Conn.Close()
	}
	if s.Servers != nil {
		errs = append(errs, s.Servers.Stop())
	}
	if s.Dir != "" {
		errs = append(errs, os.RemoveAll(s.Dir))
	}
	return errors.Join(errs...)
}

// Fill submits tasks, many at once, and returns how long that took.
func (s *Stage) Fill(ctx context.Context, tasks, submitters int) (time.Duration, error) {
	return FillWith(ctx, tasks, submitters, func(ctx context.Context) error {
		_, err := s.Client.Submit(ctx, Task())
		return err
	})
}

// FillWith submits tasks, many at once, each with one call of submit.
func FillWith(ctx context.Context, tasks, submitters int, submit func(context.Context) error) (time.Duration, error) {
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
