package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

// oldKeyset is how long a keyset may stay as it is. What one key has encrypted is bounded by rotation alone.
const oldKeyset = 365 * 24 * time.Hour

// encryption checks the keyset of the environment, as far as this machine knows it.
func (d *doctor) encryption() Finding {
	const check = "encryption"
	enc := &d.env.dispatcher.Encryption
	if err := enc.CheckEncryption(); err != nil {
		return fail(check, "set LONGSHORE_KEYSET to the keyset of the fleet; `longshore keys generate FILE` makes the first one", "%v", err)
	}
	m, err := enc.Master()
	switch {
	case err != nil:
		return fail(check, "correct LONGSHORE_KEYSET", "%v", err)
	case m == nil:
		return ok(check, "off: LONGSHORE_ENCRYPTION says that what runs store is in the clear")
	}
	all := m.Keys()
	newest := all[len(all)-1]
	said := enc.Encryption + ": " + render.Count(int64(len(all)), "key") + ", of which " + keyring.KeyID(m.Writer()) + " writes"
	var age time.Duration
	if info, err := os.Stat(enc.Keyset); err == nil { // else the variable holds the keyset
		age = time.Since(info.ModTime())
		said += "; changed " + render.Span(age) + " ago"
	}
	switch {
	case !newest.Writes:
		return warn(check, "when all processes have this file, run `longshore keys rotate promote FILE`", "%s; the newer key %s does not write yet", said, keyring.KeyID(newest.ID))
	case age > oldKeyset:
		return warn(check, "rotate its keys: docs/encryption.md#rotation", "%s", said)
	default:
		return ok(check, "%s", said)
	}
}

// tenantKeys checks that the keysets of tenants open with that of the environment.
func (s *store) tenantKeys(ctx context.Context) []Finding {
	const check = "tenant keys"
	enc := &s.env.dispatcher.Encryption
	m, err := enc.Master()
	if err != nil || m == nil {
		return nil // the finding of another check
	}
	var c keyCounts
	err = s.ask(ctx, func(ctx context.Context) error {
		b, err := bus.Open(ctx, s.nc, bus.Config{Log: slog.New(slog.DiscardHandler), Streams: []string{bus.StreamKeyring}})
		if err != nil {
			return err
		}
		keys, err := fleet.Keys(b, enc)
		if err != nil {
			return err
		}
		c, err = countKeys(ctx, keys, m)
		return err
	})
	switch {
	case errors.Is(err, errDenied):
		return []Finding{skip(check, asDispatcher, "%v", err)}
	case err != nil:
		return []Finding{skip(check, "look at the findings before this one", "%v", err)}
	}
	return []Finding{c.judge(check, len(m.Keys()))}
}

// keyCounts is what is known of the keysets of tenants.
type keyCounts struct {
	tenants, old, destroyed int
	missing                 []string // tenants whose keyset needs a key that is missing
}

func countKeys(ctx context.Context, keys *keyring.Keyring, m *keyring.Master) (c keyCounts, err error) {
	for t, err := range keys.Tenants(ctx) {
		if err != nil {
			return c, err
		}
		c.tenants++
		switch {
		case t.Master == 0:
			c.destroyed++
		case !m.Has(t.Master):
			c.missing = append(c.missing, t.Name)
		case t.Master != m.Writer():
			c.old++
		}
	}
	return c, nil
}

// judge is the finding; known is how many keys the keyset has.
func (c *keyCounts) judge(check string, known int) Finding {
	said := render.Count(int64(c.tenants), "tenant")
	if c.destroyed > 0 {
		said += fmt.Sprintf(", %d of which had the key destroyed", c.destroyed)
	}
	switch {
	case len(c.missing) > 0:
		const most = 5
		named := c.missing[:min(len(c.missing), most)]
		return fail(check, "set LONGSHORE_KEYSET of all processes to the newest keyset of the fleet, which has all of its keys",
			"%s; LONGSHORE_KEYSET lacks the key of %s: %s", said, render.Count(int64(len(c.missing)), "tenant"), strings.Join(named, ", "))
	case c.old > 0:
		return warn(check, "when all processes have the keyset whose new key writes, run `longshore keys rotate tenants`",
			"%s; the keys of %s are encrypted with an old key", said, render.Count(int64(c.old), "tenant"))
	case known > 1:
		return warn(check, "when all processes have the keyset whose new key writes, run `longshore keys rotate retire FILE`",
			"%s; no tenant needs the %s of LONGSHORE_KEYSET", said, render.Count(int64(known-1), "old key"))
	default:
		return ok(check, "%s; all keys are encrypted with the one that writes", said)
	}
}
