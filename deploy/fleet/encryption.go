package fleet

import (
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

// Keys is the keyring of a process, by its settings.
func Keys(b *bus.Bus, s *settings.Encryption) (*keyring.Keyring, error) {
	cfg, err := s.Ring()
	if err != nil {
		return nil, err
	}
	return keyring.New(b, cfg), nil
}
