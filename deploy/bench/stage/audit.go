package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	command "github.com/longshore-run/longshore/deploy/command/audit"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/observability/audit"
)

// AuditName is the name of the auditor's connection.
const AuditName = "longshore audit"

// AuditConfig is the setup of the auditor's process.
type AuditConfig struct {
	NATSURL string `json:"natsUrl"`
	Dir     string `json:"dir"` // of the audit and its key
	Profile string `json:"profile,omitempty"`
}

// AuditReady is its answer.
type AuditReady struct {
	Addr string `json:"addr"` // of its metrics
}

type auditRole struct {
	env     Env
	audit   *measure.Background
	profile func() error
}

func (a *auditRole) Setup(ctx context.Context, args json.RawMessage) (any, error) {
	var cfg AuditConfig
	if err := json.Unmarshal(args, &cfg); err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	key, err := audit.NewKey()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of the audit: %w", err)
	}
	file := filepath.Join(cfg.Dir, "key")
	if err := os.WriteFile(file, []byte(key.Seed()), 0o600); err != nil {
		return nil, fmt.Errorf("write key of the audit: %w", err)
	}
	if a.profile, err = measure.Profile(cfg.Profile); err != nil {
		return nil, err
	}
	var s settings.Audit
	env := append([]string{
		"NATS_URL=" + cfg.NATSURL, "LONGSHORE_AUDIT_DIR=" + filepath.Join(cfg.Dir, "chains"), "LONGSHORE_AUDIT_KEY_FILE=" + file,
	}, a.env.encryption()...)
	if err := settings.Load(&s, env); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	a.audit = measure.InBackground(ctx, func(ctx context.Context) error {
		return command.Run(ctx, s, "0.0.0", a.env.Log, func(addr string) { ready <- addr })
	})
	select {
	case addr := <-ready:
		return AuditReady{addr}, nil
	case <-a.audit.Ended():
		return nil, fmt.Errorf("run auditor: %w", a.audit.Err())
	}
}

func (*auditRole) Start(context.Context) error { return nil }

func (*auditRole) Usage(context.Context) (measure.Usage, error) { return measure.OwnUsage() }

func (a *auditRole) Stop() error {
	var errs []error
	if a.audit != nil {
		errs = append(errs, a.audit.Stop())
	}
	if a.profile != nil {
		errs = append(errs, a.profile())
	}
	return errors.Join(errs...)
}
