package keyset

import (
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

func generateCommand(cfg Config) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "generate FILE", Short: "Make the keyset that encrypts what is stored",
		Long: "Write a new keyset to FILE, which must not exist, and print the id of its key. Give all dispatchers and workers the same\n" +
			"file (LONGSHORE_KEYSET). Keep a copy in a safe place: without it, what is stored cannot be read.",
		Args: render.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := keyring.NewMaster()
			if err != nil {
				return err
			}
			if err := write(args[0], m, false); err != nil {
				return err
			}
			return tell(cmd, cfg, *asJSON, m.Writer())
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

// tell prints the id of a key.
func tell(cmd *cobra.Command, cfg Config, asJSON bool, id uint32) error {
	if asJSON {
		return render.WriteJSON(cmd, map[string]string{"key": keyring.KeyID(id)}, cfg.Raw)
	}
	return render.Write(cmd.OutOrStdout(), keyring.KeyID(id)+"\n")
}
