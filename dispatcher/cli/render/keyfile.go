package render

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

// OneFile checks that a command was given the name of one file.
func OneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return Usagef("needs the name of one file, got %d arguments", len(args))
	}
	return nil
}

// WriteKey writes a secret key to a new file that only its owner can read.
func WriteKey(file, key string) error {
	const private = 0o600
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if errors.Is(err, fs.ErrExist) {
		return Usagef("%s exists already", file)
	}
	if err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	_, err = f.WriteString(key + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	return nil
}
