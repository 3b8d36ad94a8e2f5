package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/observability/audit"
)

// filter says which entries are wanted.
type filter struct {
	run, tenant string
	since       time.Time
}

func exportCommand(environ func() []string) *cobra.Command {
	var p place
	var f filter
	var since string
	var output render.Format
	open := false
	cmd := &cobra.Command{
		Use: "export", Short: "Write entries of the audit, verified as they are read",
		Long: "Write the entries of a run, of a tenant, or all, one per line. All chains are verified while they are read: findings\n" +
			"go to stderr, and the command exits with 1. What is encrypted is written so, unless --open opens it: that needs\n" +
			"LONGSHORE_KEYSET, and a NATS user such as the auditor's.",
		Example: "  longshore audit export --dir audit --tenant acme --run 01KDZ6XV00000000000000000A\n" +
			"  longshore audit export --dir audit --since 24h -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			if f.since, err = sinceWhen(since, time.Now()); err != nil {
				return err
			}
			for _, token := range []struct{ flag, text string }{{"--run", f.run}, {"--tenant", f.tenant}} {
				if token.text != "" && !strict.ValidToken(token.text) {
					return render.Usagef("%s: must be 1 to 64 characters of A-Z a-z 0-9 _ -", token.flag)
				}
			}
			if !open {
				return f.export(cmd, cfg, output.JSON, nil)
			}
			return withKeys(cmd.Context(), environ(), func(keys *keyring.Keyring) error { return f.export(cmd, cfg, output.JSON, keys) })
		},
	}
	p.flags(cmd, environ)
	set := cmd.Flags()
	set.StringVar(&f.run, "run", "", "only of this run")
	set.StringVar(&f.tenant, "tenant", "", "only of this tenant")
	set.StringVar(&since, "since", "", "only entries since a time such as 2026-01-02T15:04:05Z, or of the last duration such as 24h")
	set.BoolVar(&open, "open", false, "open what is encrypted")
	set.VarP(&output, "output", "o", "text or json: one entry per line")
	return cmd
}

func sinceWhen(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, render.Usagef("--since: must be a time such as 2026-01-02T15:04:05Z or a duration such as 24h")
	}
	return at, nil
}

// fits reports whether an entry is wanted.
func (f *filter) fits(e *audit.Entry) bool {
	const run = 2 // its token of a subject
	if t := strings.Split(e.Subject, "."); f.run != "" && (len(t) <= run || t[run] != f.run) {
		return false
	}
	return !e.At.Before(f.since)
}

// withKeys runs a function with the keys of tenants.
func withKeys(ctx context.Context, environ []string, do func(*keyring.Keyring) error) error {
	if err := settings.NeedNATS(environ, "the keys of tenants are on NATS"); err != nil {
		return err
	}
	var s settings.Audit
	if err := settings.Read(&s, environ); err != nil {
		return err
	}
	nc, err := fleet.Connect(ctx, s.NATS, fleet.Client, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := bus.Open(ctx, nc, bus.Config{Streams: []string{}})
	if err != nil {
		return err
	}
	keys, err := fleet.Keys(b, &s.Encryption)
	if err != nil {
		return err
	}
	if !keys.On() {
		return settings.Errorf("LONGSHORE_KEYSET is missing: --open needs the keyset of the fleet")
	}
	return do(keys)
}

// opened opens what is encrypted, if there are keys. What a destroyed key has encrypted stays as it is, as all that needs no key.
func opened(ctx context.Context, e *audit.Entry, tenant string, keys *keyring.Keyring) error {
	if keys == nil {
		return nil
	}
	err := e.Open(ctx, keys, tenant)
	if errors.Is(err, audit.ErrNotSealed) || errors.Is(err, record.ErrUnreadable) {
		return nil
	}
	return err
}

func (f *filter) export(cmd *cobra.Command, cfg audit.VerifyConfig, asJSON bool, keys *keyring.Keyring) error {
	out := bufio.NewWriter(cmd.OutOrStdout())
	cfg.Tenant = f.tenant
	written := false
	cfg.Found = func(found audit.Finding) {
		_, _ = io.WriteString(cmd.ErrOrStderr(), located(&found)) // the exit code still tells
	}
	cfg.Entry = func(tenant string, e *audit.Entry) error {
		if !f.fits(e) {
			return nil
		}
		if err := opened(cmd.Context(), e, tenant, keys); err != nil {
			return fmt.Errorf("open entry %d of tenant %s: %w", e.N, tenant, err)
		}
		text := told(tenant, e)
		if asJSON {
			text = `{"tenant":"` + tenant + `","entry":` + strings.TrimSuffix(string(e.Line()), "\n") + "}\n"
		}
		written = true
		_, err := out.WriteString(text)
		return err
	}
	sum, err := audit.Verify(cmd.Context(), cfg)
	if err := errors.Join(err, out.Flush()); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if sum.Findings > 0 {
		return ErrFound
	}
	if !written {
		_, _ = io.WriteString(cmd.ErrOrStderr(), "no such entries\n") // nothing depends on it
	}
	return nil
}

// told is an entry in a line for people.
func told(tenant string, e *audit.Entry) string {
	run, name := "-", ""
	const tokens = 4
	if t := strings.Split(e.Subject, "."); len(t) == tokens {
		run = t[2]
		if e.Kind == audit.KindEvent {
			name = t[3]
		}
	}
	text := fmt.Sprintf("%s  %-8s  %6d  %-8s  %s  %s", render.At(e.At, time.Now()), tenant, e.N, e.Kind, run, strings.TrimSpace(name+" "+about(e)))
	return render.Visible(text) + "\n"
}

// about is who did what, where an event says so.
func about(e *audit.Entry) string {
	if len(e.Sealed) > 0 {
		return "(encrypted)"
	}
	if e.Kind != audit.KindEvent {
		return strict.Clip(string(e.Body), 256)
	}
	var event struct {
		Data map[string]any `json:"data"`
	}
	if json.Unmarshal(e.Body, &event) != nil {
		return ""
	}
	var parts []string
	for _, key := range []string{"by", "who", "action", "target", "name", "decision", "outcome", "operation", "agent", "toolName", "callId", "code", "reason"} {
		if text, ok := event.Data[key].(string); ok && text != "" {
			parts = append(parts, key+"="+strict.Clip(text, 128))
		}
	}
	return strings.Join(parts, " ")
}
