package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
)

// DispatcherConfig is the setup of the dispatcher's process.
type DispatcherConfig struct {
	NATSURL  string `json:"natsUrl"`
	Replicas int    `json:"replicas,omitempty"` // LONGSHORE_REPLICAS; 0: the default
	Index    string `json:"index"`              // LONGSHORE_INDEX
	Profile  string `json:"profile,omitempty"`
	Retain   string `json:"retain,omitempty"` // LONGSHORE_RETENTION; empty: the default
}

// DispatcherReady is its answer.
type DispatcherReady struct {
	Addr string `json:"addr"`
}

type dispatcherRole struct {
	env        Env
	dispatcher *measure.Background
	heap       *measure.Background
	profile    func() error
}

func (d *dispatcherRole) Setup(ctx context.Context, args json.RawMessage) (any, error) {
	var cfg DispatcherConfig
	if err := json.Unmarshal(args, &cfg); err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	if err := measure.RaiseFiles(); err != nil {
		return nil, err
	}
	var err error
	if d.profile, err = measure.Profile(cfg.Profile); err != nil {
		return nil, err
	}
	var s settings.Dispatcher
	env := append([]string{"NATS_URL=" + cfg.NATSURL, "LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_INDEX=" + cfg.Index, "LONGSHORE_SWEEP=24h"}, d.env.encryption()...)
	if cfg.Replicas > 0 {
		env = append(env, "LONGSHORE_REPLICAS="+strconv.Itoa(cfg.Replicas))
	}
	if cfg.Retain != "" {
		env = append(env, "LONGSHORE_RETENTION="+cfg.Retain)
	}
	if err := settings.Load(&s, env); err != nil {
		return nil, err
	}
	d.heap = d.env.KeepHeap(ctx, 0) // as the command does
	ready := make(chan string, 1)
	d.dispatcher = measure.InBackground(ctx, func(ctx context.Context) error {
		return fleet.Dispatcher(ctx, s, "0.0.0", d.env.Log, func(addr string) { ready <- addr })
	})
	select {
	case addr := <-ready:
		return DispatcherReady{addr}, nil
	case <-d.dispatcher.Ended():
		return nil, fmt.Errorf("run dispatcher: %w", d.dispatcher.Err())
	}
}

func (*dispatcherRole) Start(context.Context) error { return nil }

// usage adds what the process holds now, after a garbage collection.
func (*dispatcherRole) Usage(context.Context) (measure.Usage, error) {
	debug.FreeOSMemory()
	u, err := measure.OwnUsage()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.InUseBytes, u.Goroutines = m.HeapInuse+m.StackInuse, runtime.NumGoroutine()
	return u, err
}

func (d *dispatcherRole) Stop() error {
	var errs []error
	for _, b := range []*measure.Background{d.dispatcher, d.heap} {
		if b != nil {
			errs = append(errs, b.Stop())
		}
	}
	if d.profile != nil {
		errs = append(errs, d.profile())
	}
	return errors.Join(errs...)
}
