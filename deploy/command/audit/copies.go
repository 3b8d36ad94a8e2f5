package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/observability/audit"
)

// copies makes the copier of an auditor, with its metrics; nil without a store.
func copies(ctx context.Context, nc *nats.Conn, s settings.Audit, m *observability.Metrics, log *slog.Logger) (*audit.Copier, error) {
	if s.Store == "" {
		return nil, nil
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	bucket, err := audit.OpenBucket(ctx, js, s.Store)
	if err != nil {
		return nil, err
	}
	c := audit.NewCopier(audit.CopyConfig{Dir: s.Dir, Bucket: bucket, Log: log})
	number := func(f func() uint64) func() float64 { return func() float64 { return float64(f()) } }
	return c, errors.Join(
		m.Gauge("audit_store_position", "The sequence in EVENTS up to which all is in the audit's object store too, since the start.", number(c.Position)),
		m.Counter("audit_store_errors_total", "Times that copying to the audit's object store failed and is tried again.", number(c.Errors)),
		m.Counter("audit_store_conflicts_total", "Objects of the audit's store that are not as the folder has them.", number(c.Conflicts)),
	)
}

// fetchCommand gets copies back.
func fetchCommand(environ func() []string, raw bool) *cobra.Command {
	var dir, store string
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "fetch", Short: "Get the audit back from its object store, to verify it",
		Long: "Get all segments and heads that an auditor has copied (audit run --store) into an empty or new folder,\n" +
			"for `longshore audit verify --dir`. It exits with 1 if an object does not match its digest. It connects as the\n" +
			"auditor: no other user may read the store.",
		Example: "  longshore audit fetch --dir copy && longshore audit verify --dir copy --public-key lsap_…",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.NeedNATS(environ(), "the copies are in an object store of NATS"); err != nil {
				return err
			}
			var s settings.Audit
			if err := settings.Read(&s, environ()); err != nil {
				return err
			}
			if store = cmp.Or(store, s.Store, audit.Bucket); !strict.ValidToken(store) {
				return render.Usagef("--store: must be 1 to 64 characters of A-Z a-z 0-9 _ -")
			}
			if dir == "" {
				return render.Usagef("--dir: the folder to fill is missing")
			}
			bucket, done, err := openStore(cmd.Context(), s, store)
			if err != nil {
				return err
			}
			defer done()
			got, err := audit.Fetch(cmd.Context(), bucket, dir)
			if errors.Is(err, audit.ErrObject) {
				err = fmt.Errorf("%w: %w", ErrFound, err)
			}
			if *asJSON {
				told := fetched{Fetched: got, OK: err == nil}
				if err != nil {
					told.Error = err.Error()
				}
				return errors.Join(err, render.WriteJSON(cmd, told, raw))
			}
			_, printed := fmt.Fprintf(cmd.OutOrStdout(), "%s, %s\n", render.Count(int64(got.Segments), "segment"), render.Count(got.Bytes, "byte"))
			return errors.Join(err, printed)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to fill; it must be empty or not exist")
	cmd.Flags().StringVar(&store, "store", "", "object store (default LONGSHORE_AUDIT_STORE, else "+audit.Bucket+")")
	asJSON = render.OutputFlag(cmd)
	return cmd
}

// fetched is what the command writes as JSON.
type fetched struct {
	audit.Fetched

	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

// openStore connects as the auditor; done ends the connection.
func openStore(ctx context.Context, s settings.Audit, store string) (bucket jetstream.ObjectStore, done func(), err error) {
	if err := s.NATS.Check(); err != nil {
		return nil, nil, err
	}
	nc, err := fleet.Connect(ctx, s.NATS, "longshore audit", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("open JetStream: %w", err)
	}
	if bucket, err = js.ObjectStore(ctx, store); err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("open the object store %s: %w", store, err)
	}
	return bucket, nc.Close, nil
}
