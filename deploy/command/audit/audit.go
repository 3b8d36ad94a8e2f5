// Package audit is the command `longshore audit`: it wires the auditor, and reads what it wrote.
package audit

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/observability/audit"
)

// ErrFound means that an audit is not as it was written.
var ErrFound = errors.New("the audit differs from what was written")

// Command is `longshore audit`. The version is that of the program. With raw, JSON is written as it is, for an output that
// is no terminal.
func Command(version string, environ func() []string, raw bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Keep a tamper-evident record of all events, and verify it",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(runCommand(version, environ), verifyCommand(environ, raw), fetchCommand(environ, raw), exportCommand(environ), keyCommand(raw))
	return cmd
}

// keyCommand makes the key of an auditor.
func keyCommand(raw bool) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "key FILE", Short: "Make the key pair that signs the audit",
		Long: "Write a new secret key to FILE, which must not exist, and print its public key. Give the auditor the file\n" +
			"(--key), and give the public key to those who verify the audit (--public-key).",
		Args: render.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := audit.NewKey()
			if err != nil {
				return err
			}
			if err := render.WriteKey(args[0], key.Seed()); err != nil {
				return err
			}
			if *asJSON {
				return render.WriteJSON(cmd, map[string]string{"key": key.Public()}, raw)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key.Public())
			return err
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

// place says where an audit is and which keys are trusted.
type place struct {
	dir, keys   string
	maxUnsigned time.Duration
}

// maxUnsigned is far more than an auditor at work needs for a head: it writes one every two seconds.
const maxUnsigned = 10 * time.Minute

func (p *place) flags(cmd *cobra.Command, environ func() []string) {
	cmd.Flags().StringVar(&p.dir, "dir", "", "folder of the audit (default LONGSHORE_AUDIT_DIR)")
	cmd.Flags().StringVar(&p.keys, "public-key", "", "public keys of accepted signatures, comma separated (default LONGSHORE_AUDIT_KEYS)")
	cmd.Flags().DurationVar(&p.maxUnsigned, "max-unsigned", maxUnsigned, "how old an entry without a signed head may be; 0: any age")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		var s settings.Audit
		if err := settings.Read(&s, environ()); err != nil {
			return err
		}
		if p.dir == "" {
			p.dir = s.Dir
		}
		if p.keys == "" {
			p.keys = s.Keys
		}
		if p.maxUnsigned < 0 {
			return render.Usagef("--max-unsigned: must not be below 0")
		}
		if p.dir == "" {
			return render.Usagef("--dir: the folder of the audit is missing")
		}
		return nil
	}
}

func (p *place) config() (audit.VerifyConfig, error) {
	keys, err := audit.ParsePublicKeys(p.keys)
	if err != nil {
		return audit.VerifyConfig{}, render.Usagef("--public-key: %w", err)
	}
	return audit.VerifyConfig{Dir: p.dir, Keys: keys, MaxUnsigned: p.maxUnsigned}, nil
}
