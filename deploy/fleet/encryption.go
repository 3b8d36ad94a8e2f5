package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/document"
)

const (
	keysetSuffix  = ".keyset"       // beside the data folder: who copies the folder alone cannot read it
	storeKeyFile  = "jetstream.key" // in the data folder, encrypted with the keyset
	storeKeyUse   = "longshore dev store 1"
	maxStoreKey   = 4 << 10
	ownerOnly     = 0o600
	ownerOnlyPath = 0o700
)

// KeysetBeside is the keyset of a data folder of `longshore dev`, unless LONGSHORE_KEYSET says another one.
func KeysetBeside(dir string) string { return filepath.Clean(dir) + keysetSuffix }

// devKeys are the keys of a fleet in one process: its keyset, which it makes at the first start, and what encrypts the files of its
// message store. With encryption off both are empty.
func devKeys(cfg *DevConfig) (enc settings.Encryption, storeKey string, err error) {
	enc = cfg.Encryption
	if enc.Encryption == settings.EncryptionOff {
		if cfg.Dir != "" && exists(filepath.Join(cfg.Dir, storeKeyFile)) {
			return enc, "", settings.Errorf("LONGSHORE_ENCRYPTION is off, and the data folder %s is encrypted: unset LONGSHORE_ENCRYPTION, or use another folder", cfg.Dir)
		}
		return enc, "", nil
	}
	if enc.Encryption == "" {
		enc.Encryption = settings.EncryptionOn
	}
	if enc.Keyset == "" {
		if enc.Keyset, err = ownKeyset(cfg.Dir); err != nil {
			return enc, "", err
		}
	}
	master, err := enc.Master()
	if err != nil {
		return enc, "", err
	}
	if cfg.Dir == "" { // a temporary folder needs its key no longer than this process
		return enc, rand.Text(), nil
	}
	storeKey, err = keyOfStore(cfg.Dir, master)
	return enc, storeKey, err
}

// ownKeyset returns the keyset of a data folder, and makes it for a folder that has none; a temporary folder has one in memory.
func ownKeyset(dir string) (string, error) {
	name := KeysetBeside(dir)
	switch {
	case dir != "" && exists(name):
		return name, nil
	case dir != "" && exists(filepath.Join(dir, storeKeyFile)):
		return "", settings.Errorf("the keyset %s of the data folder is missing: put it back, or name it in LONGSHORE_KEYSET; without it the folder cannot be read", name)
	}
	master, err := keyring.NewMaster()
	if err != nil {
		return "", err
	}
	text, err := master.Encode()
	if err != nil {
		return "", err
	}
	if dir == "" {
		return string(text), nil
	}
	if err := os.MkdirAll(filepath.Dir(name), ownerOnlyPath); err != nil {
		return "", fmt.Errorf("make the folder of the data folder: %w", err)
	}
	if err := writeNew(name, text); err != nil && !errors.Is(err, fs.ErrExist) { // another process was faster
		return "", fmt.Errorf("write a keyset beside the data folder: %w: let LONGSHORE_KEYSET name one, or say LONGSHORE_ENCRYPTION=off", err)
	}
	return name, nil
}

// keyOfStore is what encrypts the files of the message store. It is kept in the data folder, encrypted with the key of the keyset that writes.
func keyOfStore(dir string, master *keyring.Master) (string, error) {
	name := filepath.Join(dir, storeKeyFile)
	if !exists(name) {
		if err := os.MkdirAll(dir, ownerOnlyPath); err != nil {
			return "", fmt.Errorf("make the data folder: %w", err)
		}
		wrapped, err := master.Wrap([]byte(rand.Text()), storeKeyUse)
		if err != nil {
			return "", err
		}
		if err := writeNew(name, wrapped); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("write the key of the store: %w", err)
		}
	}
	wrapped, err := document.Read(name, maxStoreKey)
	if err != nil {
		return "", fmt.Errorf("read the key of the store: %w", err)
	}
	key, err := master.Unwrap(wrapped, storeKeyUse)
	if err != nil {
		return "", settings.Errorf("the data folder %s does not open with this keyset: %v: name the keyset that it was made with in LONGSHORE_KEYSET; without that variable it is %s", dir, err, KeysetBeside(dir))
	}
	if !master.Current(wrapped) { // keys were rotated, and the old one may be retired
		if err := rewrap(name, key, master); err != nil {
			return "", fmt.Errorf("encrypt the key of the store with the new key of the keyset: %w", err)
		}
	}
	return string(key), nil
}

// rewrap encrypts the key of the store again, in the place of the one before as a whole.
func rewrap(name string, key []byte, master *keyring.Master) error {
	wrapped, err := master.Wrap(key, storeKeyUse)
	if err != nil {
		return err
	}
	next := name + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that died
		return err
	}
	if err := writeNew(next, wrapped); err != nil {
		return err
	}
	return os.Rename(next, name)
}

// CheckRetire returns an error if the data folder of `longshore dev` beside a keyset can no longer be opened once the keys of the keyset that
// do not write are removed.
func CheckRetire(keyset string, master *keyring.Master) error {
	dir, ok := strings.CutSuffix(filepath.Clean(keyset), keysetSuffix)
	if name := filepath.Join(dir, storeKeyFile); ok && exists(name) {
		wrapped, err := document.Read(name, maxStoreKey)
		if err != nil {
			return fmt.Errorf("read the key of the store: %w", err)
		}
		if !master.Current(wrapped) {
			return settings.Errorf("the data folder %s is encrypted with an older key of %s: restart `longshore dev` first, which then uses the new one", dir, keyset)
		}
	}
	return nil
}

// writeNew writes a secret to a file that must not exist, whole or not at all.
func writeNew(name string, secret []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnly)
	if err != nil {
		return err
	}
	_, err = f.Write(secret)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// Keys is the keyring of a process, by its settings.
func Keys(b *bus.Bus, s *settings.Encryption) (*keyring.Keyring, error) {
	cfg, err := s.Ring()
	if err != nil {
		return nil, err
	}
	return keyring.New(b, cfg), nil
}

// lateSealer is the keyring of what is made before there is a connection to NATS.
type lateSealer struct {
	keys atomic.Pointer[keyring.Keyring]
}

// errNoKeysYet is a miss of a cache.
var errNoKeysYet = errors.New("the keyring is not open yet")

// Seal implements the sealers of leaves.
func (l *lateSealer) Seal(ctx context.Context, tenant string, plain, at []byte) ([]byte, error) {
	k := l.keys.Load()
	if k == nil {
		return nil, errNoKeysYet
	}
	return k.Seal(ctx, tenant, plain, at)
}

// Open implements the sealers of leaves.
func (l *lateSealer) Open(ctx context.Context, tenant string, value, at []byte) ([]byte, error) {
	k := l.keys.Load()
	if k == nil {
		return nil, errNoKeysYet
	}
	return k.Open(ctx, tenant, value, at)
}
