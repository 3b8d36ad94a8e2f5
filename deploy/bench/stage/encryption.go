package stage

import (
	"fmt"
	"os"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

// KeysetVariable holds the keyset of a measurement with encryption, for all of its processes.
const KeysetVariable = "LONGSHORE_BENCH_KEYSET"

// storeKey encrypts the files of the servers then.
const storeKey = "bench"

// Encrypt has the processes of this measurement encrypt what they store.
func Encrypt() error {
	m, err := keyring.NewMaster()
	if err != nil {
		return err
	}
	text, err := m.Encode()
	if err != nil {
		return err
	}
	if err := os.Setenv(KeysetVariable, string(text)); err != nil {
		return fmt.Errorf("pass the keyset on: %w", err)
	}
	return nil
}

// keys is the keyring of a process. It is off without -encrypt.
func (e Env) keys(b *bus.Bus) (*keyring.Keyring, error) {
	text := e.keyset()
	if text == "" {
		return keyring.New(b, keyring.Config{}), nil
	}
	m, err := keyring.ParseMaster([]byte(text))
	if err != nil {
		return nil, err
	}
	return keyring.New(b, keyring.Config{Master: m}), nil
}

// encryption is what the settings of a process say of it.
func (e Env) encryption() []string {
	if text := e.keyset(); text != "" {
		return []string{"LONGSHORE_ENCRYPTION=on", "LONGSHORE_KEYSET=" + text}
	}
	return []string{"LONGSHORE_ENCRYPTION=off"}
}

// keyset is the keyset of this measurement; empty: nothing is encrypted.
func (e Env) keyset() string { return e.Get(KeysetVariable) }
