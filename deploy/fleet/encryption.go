package fleet

import (
	"context"
	"errors"
	"sync/atomic"

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
