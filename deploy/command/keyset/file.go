package keyset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

// read reads the keyset of a file.
func read(name string) (*keyring.Master, error) {
	e := settings.Encryption{Keyset: filepath.Clean(name)}
	return e.Master()
}

// write puts a keyset into a new file, or in the place of an old one as a whole: a keyset that is cut is data that is lost.
func write(name string, m *keyring.Master, replace bool) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	if !replace {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnly)
		if errors.Is(err, fs.ErrExist) {
			return render.Usagef("%s exists already", name)
		}
		if err != nil {
			return fmt.Errorf("write the keyset: %w", err)
		}
		return fill(f, text)
	}
	was, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("write the keyset: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".keyset-") // only its owner may read it
	if err != nil {
		return fmt.Errorf("write the keyset: %w", err)
	}
	if err := errors.Join(keepOwner(f, was), fill(f, text)); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return errors.Join(fmt.Errorf("write the keyset: %w", err), os.Remove(f.Name()))
	}
	return nil
}

const ownerOnly = 0o600

func fill(f *os.File, text []byte) error {
	_, err := f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the keyset: %w", err)
	}
	return nil
}
