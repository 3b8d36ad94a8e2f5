package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	command "github.com/longshore-run/longshore/deploy/command/doctor"
)

// DoctorConfig is the setup of a process that runs `longshore doctor runs` once.
type DoctorConfig struct {
	NATSURL string `json:"natsUrl"`
}

type doctorRole struct {
	env Env
	run func(context.Context) error
}

func (d *doctorRole) Setup(_ context.Context, args json.RawMessage) (any, error) {
	var cfg DoctorConfig
	if err := json.Unmarshal(args, &cfg); err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	cmd := command.Command(command.Config{
		Environ: func() []string { return append([]string{"NATS_URL=" + cfg.NATSURL}, d.env.encryption()...) }, Version: "0.0.0",
	})
	cmd.SetArgs([]string{"runs"})
	cmd.SetOut(io.Discard)
	cmd.SilenceUsage = true
	d.run = cmd.ExecuteContext
	return nil, nil
}

// Start returns when the command has ended.
func (d *doctorRole) Start(ctx context.Context) error { return d.run(ctx) }

func (*doctorRole) Usage(context.Context) (measure.Usage, error) { return measure.OwnUsage() }

func (*doctorRole) Stop() error { return nil }
