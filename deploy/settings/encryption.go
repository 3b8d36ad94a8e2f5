package settings

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/document"
)

// What LONGSHORE_ENCRYPTION may be.
const (
	EncryptionOn       = "on"
	EncryptionRequired = "required"
	EncryptionOff      = "off"
)

// Encryption says whether what is stored of tenants is encrypted, and with which keyset. The zero value is off.
type Encryption struct {
	Keyset     string `env:"LONGSHORE_KEYSET"     help:"keyset that encrypts what is stored: a file that only its owner may read, or its content; longshore keys generate makes one"`
	Encryption string `env:"LONGSHORE_ENCRYPTION" envDefault:"on" help:"on; required: refuse what was stored in the clear; off: store everything in the clear"`
}

// CheckEncryption returns an *Error if it is not said how to encrypt, nor that nothing is to be encrypted.
func (e *Encryption) CheckEncryption() error {
	switch {
	case e.Encryption != EncryptionOn && e.Encryption != EncryptionRequired && e.Encryption != EncryptionOff:
		return Errorf("LONGSHORE_ENCRYPTION: must be on, required or off")
	case e.Encryption == EncryptionOff && e.Keyset != "":
		return Errorf("LONGSHORE_ENCRYPTION is off and LONGSHORE_KEYSET is set: unset one of them")
	case e.Encryption != EncryptionOff && e.Keyset == "":
		return Errorf("LONGSHORE_KEYSET is missing: without it anyone who can read the disks of NATS and Redis can read what tenants store; " +
			"`longshore keys generate FILE` makes a keyset, of which all dispatchers and workers need the same, or say LONGSHORE_ENCRYPTION=off")
	}
	_, err := e.Master()
	return err
}

// maxKeyset bounds what is read of a keyset, in bytes.
const maxKeyset = 64 << 10

// Master reads the keyset; nil: there is none, so nothing is encrypted. An *Error says what is wrong with it, and shows nothing of it.
func (e *Encryption) Master() (*keyring.Master, error) {
	if e.Keyset == "" || e.Encryption == EncryptionOff {
		return nil, nil //nolint:nilnil // off
	}
	text := []byte(e.Keyset)
	if !e.inline() {
		if err := private(e.Keyset); err != nil {
			return nil, Errorf("LONGSHORE_KEYSET: %v", err)
		}
		var err error
		if text, err = document.Read(e.Keyset, maxKeyset); err != nil {
			return nil, Errorf("LONGSHORE_KEYSET: %v", err)
		}
	}
	m, err := keyring.ParseMaster(text)
	if err != nil {
		return nil, Errorf("LONGSHORE_KEYSET: %v", err)
	}
	return m, nil
}

// Ring is the keyring's configuration.
func (e *Encryption) Ring() (keyring.Config, error) {
	m, err := e.Master()
	return keyring.Config{Master: m, Required: e.Encryption == EncryptionRequired}, err
}

// inline reports whether the variable holds the keyset, and not the name of a file.
func (e *Encryption) inline() bool { return strings.HasPrefix(strings.TrimSpace(e.Keyset), "{") }

// keyValues finds the secrets in a keyset.
var keyValues = regexp.MustCompile(`"value"\s*:\s*"([^"]+)"`)

// values are the secrets that the variable itself holds.
func (e *Encryption) values() (out []string) {
	if !e.inline() {
		return nil
	}
	for _, found := range keyValues.FindAllStringSubmatch(e.Keyset, -1) {
		out = append(out, found[1])
	}
	return out
}

// What no one but the owner of a secret file, and its group for reading, may do.
const othersMay = 0o027

// private is an error if users of this machine other than the owner of a file, and its group, may read it, or more than the owner may
// write it. A missing file is not its concern.
func private(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || runtime.GOOS == "windows": // has no such permissions
		return nil
	case err != nil:
		return err
	case info.Mode().Perm()&othersMay != 0:
		return errors.New("other users of this machine may read or change " + name + ": chmod 600 " + name)
	}
	return nil
}
