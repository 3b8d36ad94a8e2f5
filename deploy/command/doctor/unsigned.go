package doctor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/longshore-run/longshore/messages/bus"
)

// maxUnsigned is how many entries a finding names.
const maxUnsigned = 5

// unsigned looks for API keys, agents, prompts and quotas that do not count, for their newest revision is not signed.
func (s *store) unsigned(ctx context.Context) []Finding {
	const check = "signed entries"
	keys, err := bus.ParseControlKeys(cmp.Or(s.env.dispatcher.ControlKeys, s.env.worker.ControlKeys))
	if err != nil || !keys.Any() {
		return nil // wrong keys are the finding of another check
	}
	var named []string
	n := 0
	err = s.ask(ctx, func(ctx context.Context) error {
		b, err := bus.Open(ctx, s.nc, bus.Config{Log: slog.New(slog.DiscardHandler), Keys: keys})
		if err != nil {
			return err
		}
		for name, err := range b.Unsigned(ctx) {
			if err != nil {
				return err
			}
			if n++; n <= maxUnsigned {
				named = append(named, name)
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errDenied):
		return []Finding{skip(check, asDispatcher, "%v", err)}
	case err != nil:
		return []Finding{skip(check, "look at the findings before this one", "%v", err)}
	case n == 0:
		return []Finding{ok(check, "every API key, agent, prompt and quota counts")}
	}
	if n > maxUnsigned {
		named = append(named, "…")
	}
	return []Finding{warn(check,
		"apply it again through a dispatcher that signs, or remove it if it is not yours; docs/nats-security.md#signed-decisions says how to sign what was stored before",
		"%d without a valid signature, which do not count: %s", n, strings.Join(named, ", "))}
}
