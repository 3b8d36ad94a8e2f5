package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

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
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return render.Usagef("needs the name of one file, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := bus.NewSigningKey()
			if err != nil {
				return err
			}
			const private = 0o600
			f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
			if errors.Is(err, fs.ErrExist) {
				return render.Usagef("%s exists already", args[0])
			}
			if err != nil {
				return fmt.Errorf("write the key: %w", err)
			}
			_, err = f.WriteString(key.Seed() + "\n")
			if err := errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("write the key: %w", err)
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
