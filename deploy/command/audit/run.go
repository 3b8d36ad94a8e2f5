package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/observability/audit"
)

func runCommand(version string, environ func() []string) *cobra.Command {
	var dir, key, addr, store string
	var retention time.Duration
	cmd := &cobra.Command{
		Use: "run", Short: "Run the auditor",
		Long: "Write every event once into the chain of its tenant, and compare each run that ends with its log. It needs a NATS\n" +
			"user that may read EVENTS and RUNS, and a folder where no other user may write. If it is killed, it continues where it was.\n\n" +
			"Environment variables, unless a flag is given:\n\n" + settings.Describe(&settings.Audit{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.NeedNATS(environ(), "the auditor reads the streams EVENTS and RUNS"); err != nil {
				return err
			}
			var s settings.Audit
			if err := settings.Read(&s, environ()); err != nil {
				return err
			}
			for _, f := range []struct {
				name string
				set  func()
			}{
				{"dir", func() { s.Dir = dir }},
				{"key", func() { s.KeyFile = key }},
				{"store", func() { s.Store = store }},
				{"addr", func() { s.HTTPAddr = addr }},
				{"retention", func() { s.Retention = retention }},
			} {
				if cmd.Flags().Changed(f.name) {
					f.set()
				}
			}
			if err := s.Check(); err != nil {
				return err
			}
			log, err := observability.NewLogger(cmd.ErrOrStderr(), observability.LogConfig{Level: s.Level, Format: s.Format, Redact: settings.Secrets(s)})
			if err != nil {
				return err
			}
			return Run(cmd.Context(), s, version, log, nil)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", "", "folder of the audit")
	f.StringVar(&key, "key", "", "file with the key that signs")
	f.DurationVar(&retention, "retention", 0, "how long entries are kept; 0 is forever")
	f.StringVar(&store, "store", "", "object store of NATS to copy segments and heads to, such as "+audit.Bucket)
	f.StringVar(&addr, "addr", "", "metrics and health")
	return cmd
}

// Run runs the auditor until ctx ends. Once it audits it calls ready, unless that is nil, with the HTTP address.
func Run(ctx context.Context, s settings.Audit, version string, log *slog.Logger, ready func(addr string)) (err error) {
	store, err := open(s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	control, err := bus.ParseControlKeys(s.ControlKeys)
	if err != nil {
		return settings.Errorf("LONGSHORE_CONTROL_KEYS: %v", err)
	}
	nc, err := fleet.Connect(ctx, s.NATS, "longshore audit", log)
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := bus.Open(ctx, nc, bus.Config{Log: log, Keys: control, Streams: []string{bus.StreamEvents, bus.StreamRuns}})
	if err != nil {
		return err
	}
	metrics := observability.NewMetrics(version)
	copier, err := copies(ctx, nc, s, metrics, log)
	if err != nil {
		return err
	}
	keys, err := fleet.Keys(b, &s.Encryption)
	if err != nil {
		return err
	}
	a := audit.New(audit.Config{Store: store, Bus: b, Sealer: keys, Copier: copier, Version: version, Retention: s.Retention, Log: log})
	if err := register(metrics, a); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	at, wait, err := observability.Serve(ctx, s.HTTPAddr, observability.Handler(metrics, connected(nc)), log)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "ready", "http", at.String(), "dir", s.Dir, "position", store.Position().Sum())
	if ready != nil {
		ready(at.String())
	}
	group.Go(func() error { return a.Run(ctx) })
	group.Go(wait)
	return group.Wait()
}

// open opens the folder with the key.
func open(s settings.Audit, log *slog.Logger) (*audit.Store, error) {
	const maxKeyFile = 1 << 10
	text, err := document.Read(s.KeyFile, maxKeyFile)
	if err != nil {
		return nil, settings.Errorf("LONGSHORE_AUDIT_KEY_FILE: %v", err)
	}
	key, err := audit.ParseKey(string(text))
	if err != nil {
		return nil, settings.Errorf("LONGSHORE_AUDIT_KEY_FILE: %v", err)
	}
	keys, err := audit.ParsePublicKeys(s.Keys)
	if err != nil {
		return nil, settings.Errorf("LONGSHORE_AUDIT_KEYS: %v", err)
	}
	return audit.Open(audit.StoreConfig{Dir: s.Dir, Key: key, Keys: keys, Log: log})
}

// register adds the metrics of an auditor.
func register(m *observability.Metrics, a *audit.Auditor) error {
	number := func(f func() uint64) func() float64 { return func() float64 { return float64(f()) } }
	return errors.Join(
		m.Gauge("audit_lag_events", "Messages of EVENTS that the auditor has not read.", number(a.Lag)),
		m.Gauge("audit_position", "The sequence in EVENTS, or the sum of those in its several streams, up to which all events are durably in the audit.", number(a.Position)),
		m.Gauge("audit_uncompared_runs", "Runs that ended and have not yet been compared with their logs.", number(a.Uncompared)),
		m.Counter("audit_events_total", "Messages of EVENTS that the auditor has read.", number(a.Entries)),
		m.Counter("audit_findings_total", "Runs whose events do not match their logs.", number(a.Findings)),
	)
}

// connected is the readiness of an auditor.
func connected(nc *nats.Conn) func(context.Context) error {
	return func(context.Context) error {
		if !nc.IsConnected() {
			return fmt.Errorf("no connection to NATS: %s", nc.Status())
		}
		return nil
	}
}
