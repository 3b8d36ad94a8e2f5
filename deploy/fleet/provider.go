package fleet

import (
	"time"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/worker/model"
)

// Provider makes a provider of the settings by itself, as workers have it behind their router. It may be silent for so
// long. It does not connect. One with a Close method is to be closed.
func Provider(p *settings.Provider, silence time.Duration) (model.Provider, error) {
	return provider(p, waits{start: silence, silence: silence}, nil)
}

// Signing is the public key that a dispatcher with these settings signs with; empty: it does not. Its error is that of
// the start of such a dispatcher.
func Signing(s settings.Dispatcher) (public string, err error) {
	signer, _, err := signing(s)
	if err != nil || s.SigningKey == "" {
		return "", err
	}
	return signer.Public(), nil
}
