package fleet

import (
	"errors"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/observability"
)

// maxKeyFile bounds what is read of a key's file.
const maxKeyFile = 1 << 10

// controlKeys are the keys of those whose decisions count in this process.
func controlKeys(list string) (bus.ControlKeys, error) {
	keys, err := bus.ParseControlKeys(list)
	if err != nil {
		return keys, settings.Errorf("LONGSHORE_CONTROL_KEYS: %v", err)
	}
	return keys, nil
}

// signing is what a dispatcher signs with, and whose decisions count. One that would not believe itself is refused.
func signing(s settings.Dispatcher) (signer bus.SigningKey, keys bus.ControlKeys, err error) {
	if keys, err = controlKeys(s.ControlKeys); err != nil {
		return signer, keys, err
	}
	if s.SigningKey == "" {
		if keys.Any() {
			return signer, keys, settings.Errorf("LONGSHORE_SIGNING_KEY_FILE is missing: with LONGSHORE_CONTROL_KEYS what this dispatcher decides would not count")
		}
		return signer, keys, nil
	}
	text, err := document.Read(s.SigningKey, maxKeyFile)
	if err != nil {
		return signer, keys, settings.Errorf("LONGSHORE_SIGNING_KEY_FILE: %v", err)
	}
	if signer, err = bus.ParseSigningKey(string(text)); err != nil {
		return signer, keys, settings.Errorf("LONGSHORE_SIGNING_KEY_FILE: %v", err)
	}
	if keys.Any() && !keys.Has(signer) {
		return signer, keys, settings.Errorf("LONGSHORE_CONTROL_KEYS: lacks %s, the public key of LONGSHORE_SIGNING_KEY_FILE", signer.Public())
	}
	return signer, keys, nil
}

// ignoredMetrics count what is stored and not obeyed.
func ignoredMetrics(m *observability.Metrics, b *bus.Bus, logs *runlogs.Store, granted *quotas.Quotas) error {
	return errors.Join(
		m.Counter("ignored_decisions_total", "Decisions of people that were ignored because they had no valid signature.",
			func() float64 { return float64(logs.Ignored()) }),
		m.Counter("ignored_revisions_total", "Revisions of API keys, agents, prompts and quotas that were ignored because they had no valid signature.",
			func() float64 { return float64(b.IgnoredRevisions()) }),
		m.Counter("unreadable_quotas_total", "Quotas that could not be read.", func() float64 { return float64(granted.UnreadableQuotas()) }),
	)
}
