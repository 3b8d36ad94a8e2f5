package stage

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
)

// DevConfig is the setup of a fleet in one process.
type DevConfig struct {
	Dir string `json:"dir"`
}

type devRole struct {
	env Env
	dev *fleet.Dev
}

func (d *devRole) Setup(ctx context.Context, args json.RawMessage) (any, error) {
	var cfg DevConfig
	if err := json.Unmarshal(args, &cfg); err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	dev := fleet.DevConfig{Dir: cfg.Dir, Log: d.env.Log}
	if err := settings.Load(&dev.Dev, nil); err != nil {
		return nil, err
	}
	var err error
	d.dev, err = fleet.StartDev(ctx, dev)
	return nil, err
}

func (*devRole) Start(context.Context) error { return nil }

func (*devRole) Usage(context.Context) (measure.Usage, error) { return measure.OwnUsage() }

func (d *devRole) Stop() error {
	if d.dev == nil {
		return nil
	}
	return d.dev.Stop()
}
