package audit

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/observability/audit"
)

func verifyCommand(environ func() []string, raw bool) *cobra.Command {
	var p place
	var output render.Format
	var heads []string
	cmd := &cobra.Command{
		Use: "verify", Short: "Check whether the audit was changed, and where",
		Long: "Read the whole folder, offline, and report each entry that was changed, removed, added or moved. It exits with 1\n" +
			"if there is one. Keep the newest head, which it prints, somewhere else, and pass it as --head next time:\n" +
			"then truncating the folder to an older head is detected too.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			if cfg.Anchor, err = anchors(heads); err != nil {
				return err
			}
			return verify(cmd, cfg, output.JSON, raw)
		},
	}
	p.flags(cmd, environ)
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a head that was kept elsewhere, as N:HASH; may be repeated")
	output.Register(cmd)
	return cmd
}

// anchors reads heads as verify prints them.
func anchors(heads []string) (map[uint64]audit.Hash, error) {
	out := map[uint64]audit.Hash{}
	for _, text := range heads {
		number, hash, _ := strings.Cut(text, ":")
		n, err := strconv.ParseUint(number, 10, 64)
		var h audit.Hash
		if err != nil || n == 0 || h.UnmarshalText([]byte(hash)) != nil {
			return nil, render.Usagef("--head: must be N:HASH, as verify prints it")
		}
		out[n] = h
	}
	return out, nil
}

// report is what verify writes as JSON.
type report struct {
	audit.Summary

	List []audit.Finding `json:"list"`
}

func verify(cmd *cobra.Command, cfg audit.VerifyConfig, asJSON, raw bool) error {
	r := report{List: []audit.Finding{}}
	out := cmd.OutOrStdout()
	cfg.Found = func(f audit.Finding) {
		if asJSON {
			r.List = append(r.List, f)
		} else {
			_, _ = io.WriteString(out, located(&f)) // when the output is gone the exit code still tells
		}
	}
	var err error
	if r.Summary, err = audit.Verify(cmd.Context(), cfg); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if asJSON {
		err = render.WriteJSON(cmd, r, raw)
	} else {
		_, err = io.WriteString(out, verdict(&r.Summary, len(cfg.Keys) > 0))
	}
	if err != nil {
		return err
	}
	if r.Findings > 0 {
		return ErrFound
	}
	return nil
}

// located is a finding in a line.
func located(f *audit.Finding) string {
	where := "heads"
	if f.Tenant != "" {
		where = "tenant " + f.Tenant
	}
	if f.File != "" {
		where += fmt.Sprintf(", %s, line %d", f.File, f.Line)
	}
	if f.N > 0 {
		where += fmt.Sprintf(", entry %d", f.N)
	}
	return render.Visible(fmt.Sprintf("%s: %s: %s", where, f.What, f.Detail)) + "\n"
}

func verdict(s *audit.Summary, known bool) string {
	var b strings.Builder
	what := "all are as they were written"
	if s.Findings > 0 {
		what = render.Count(int64(s.Findings), "finding") + ", see above"
	}
	entries := "1 entry"
	if s.Entries != 1 {
		entries = fmt.Sprintf("%d entries", s.Entries)
	}
	fmt.Fprintf(&b, "%s of %s: %s\n", entries, render.Count(int64(s.Tenants), "tenant"), what)
	if s.Pending > 0 {
		fmt.Fprintf(&b, "%d more are not signed yet: an auditor is at work, or was killed and will write them again\n", s.Pending)
	}
	if s.Head.N > 0 {
		fmt.Fprintf(&b, "newest head: %d:%s of %s, EVENTS up to %d\nsigned by %s\n", s.Head.N, s.Head.Hash, render.At(s.Head.At, time.Now()), s.Head.Position, s.Head.Key)
		if !known {
			b.WriteString("This key was not checked: give the one that you trust with --public-key.\n")
		}
	}
	return b.String()
}
