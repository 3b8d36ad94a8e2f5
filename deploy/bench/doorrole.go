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

// roleDoor is a dispatcher with its HTTP API, as an operator runs it.
const roleDoor = "door"

// doorConfig is the setup of the dispatcher's process, doorReady its answer.
type (
	doorConfig struct {
		NATSURL string `json:"natsUrl"`
	}
	doorReady struct {
		Addr string `json:"addr"`
	}
)

type doorRole struct {
	log        *slog.Logger
	dispatcher *background
}

func (d *doorRole) setup(ctx context.Context, args json.RawMessage) (any, error) {
	var cfg doorConfig
	if err := json.Unmarshal(args, &cfg); err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	if err := raiseFiles(); err != nil {
		return nil, err
	}
	var s settings.Dispatcher
	if err := settings.Load(&s, []string{"NATS_URL=" + cfg.NATSURL, "LONGSHORE_HTTP_ADDR=127.0.0.1:0"}); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	d.dispatcher = runInBackground(ctx, func(ctx context.Context) error {
		return fleet.Dispatcher(ctx, s, "0.0.0", d.log, func(addr string) { ready <- addr })
	})
	select {
	case addr := <-ready:
		return doorReady{addr}, nil
	case <-d.dispatcher.ended:
		return nil, fmt.Errorf("run dispatcher: %w", d.dispatcher.err)
	}
}

func (*doorRole) start(context.Context) error { return nil }

// usage adds what the process holds now, after a garbage collection.
func (*doorRole) usage(context.Context) (usage, error) {
	debug.FreeOSMemory()
	u, err := ownUsage()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.InUseBytes, u.Goroutines = m.HeapInuse+m.StackInuse, runtime.NumGoroutine()
	return u, err
}

func (d *doorRole) stop() error {
	if d.dispatcher == nil {
		return nil
	}
	return d.dispatcher.stop()
}
