package admin

import (
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus"
)

// keysControl makes the key that a dispatcher signs decisions with.
func (c keys) keysControl() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "control FILE", Short: "Make the key that signs people's decisions",
		Long: "Write a new secret key to FILE, which must not exist, and print its public key. Give dispatchers the file\n" +
			"(LONGSHORE_SIGNING_KEY_FILE), and then dispatchers and workers the public key (LONGSHORE_CONTROL_KEYS).",
		Args: render.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := bus.NewSigningKey()
			if err != nil {
				return err
			}
			if err := render.WriteKey(args[0], key.Seed()); err != nil {
				return err
			}
			if output.JSON {
				return c.WriteJSON(cmd, map[string]string{"key": key.Public()})
			}
			return render.Write(cmd.OutOrStdout(), key.Public()+"\n")
		},
	}
	output.Register(cmd)
	return cmd
}
