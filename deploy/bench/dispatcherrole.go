package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
)

// roleDispatcher is a dispatcher with its HTTP API, as an operator runs it.
const roleDispatcher = "dispatcher"

// dispatcherConfig is the setup of the dispatcher's process, dispatcherReady its answer.
type (
	dispatcherConfig struct {
		NATSURL string `json:"natsUrl"`
	}
	dispatcherReady struct {
		Addr string `json:"addr"`
	}
)

type dispatcherRole struct {
	log        *slog.Logger
	dispatcher *background
}

func (d *dispatcherRole) setup(ctx context.Context, args json.RawMessage) (any, error) {
	var cfg dispatcherConfig
	if err := json.Unmarshal(args, &cfg); err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	if err := raiseFiles(); err != nil {
		return nil, err
	}
	var s settings.Dispatcher
	env := append([]string{"NATS_URL=" + cfg.NATSURL, "LONGSHORE_HTTP_ADDR=127.0.0.1:0"}, encryption()...)
	if err := settings.Load(&s, env); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	d.dispatcher = runInBackground(ctx, func(ctx context.Context) error {
		return fleet.Dispatcher(ctx, s, "0.0.0", d.log, func(addr string) { ready <- addr })
	})
	select {
	case addr := <-ready:
		return dispatcherReady{addr}, nil
	case <-d.dispatcher.ended:
		return nil, fmt.Errorf("run dispatcher: %w", d.dispatcher.err)
	}
}

func (*dispatcherRole) start(context.Context) error { return nil }

// usage adds what the process holds now, after a garbage collection.
func (*dispatcherRole) usage(context.Context) (usage, error) {
	debug.FreeOSMemory()
	u, err := ownUsage()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.InUseBytes, u.Goroutines = m.HeapInuse+m.StackInuse, runtime.NumGoroutine()
	return u, err
}

func (d *dispatcherRole) stop() error {
	if d.dispatcher == nil {
		return nil
	}
	return d.dispatcher.stop()
}
