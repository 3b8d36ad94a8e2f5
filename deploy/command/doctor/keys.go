package doctor

import (
	"context"
	"os"
	"runtime"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/document"
)

// Bits of a file's permissions.
const (
	othersRead  = 0o004
	othersWrite = 0o022 // the group too
)

// keys checks files with secrets, and whether the keys that sign are those that are accepted.
func (d *doctor) keys(context.Context) []Finding {
	out := append(d.signing(), d.encryption())
	before := len(out)
	files := []struct{ variable, name string }{
		{"LONGSHORE_SIGNING_KEY_FILE", d.env.dispatcher.SigningKey},
		{"NATS_CREDS", d.env.worker.Credentials},
		{"NATS_NKEY", d.env.worker.NKey},
		{"LONGSHORE_TLS_KEY", d.env.dispatcher.TLSKey},
	}
	if len(d.env.worker.PlainKeys()) > 0 {
		files = append(files, struct{ variable, name string }{"LONGSHORE_PROVIDERS", d.env.worker.ProvidersFile})
	}
	for _, p := range d.env.worker.Providers() {
		files = append(files, struct{ variable, name string }{"keyFile of provider " + p.Name, p.KeyFile})
	}
	looked := 0
	for _, f := range files {
		if f.name == "" {
			continue
		}
		looked++
		if found := secretFile(f.variable, f.name); found != nil {
			out = append(out, *found)
		}
	}
	if looked > 0 && len(out) == before {
		out = append(out, ok("key files", "%d, readable only by their owner", looked))
	}
	return out
}

// secretFile is nil when all is well.
func secretFile(variable, name string) *Finding {
	var f Finding
	info, err := os.Stat(name)
	switch {
	case err != nil:
		f = fail("key files", "correct "+variable+", or let this user read the file", "%s: %v", variable, err)
	case !info.Mode().IsRegular():
		f = fail("key files", "correct "+variable, "%s: %s is not a file", variable, name)
	case runtime.GOOS == "windows": // has no such permissions
		return nil
	case info.Mode().Perm()&othersRead != 0:
		f = warn("key files", "chmod 600 "+name, "%s: all users of this machine may read %s", variable, name)
	case info.Mode().Perm()&othersWrite != 0:
		f = warn("key files", "chmod 600 "+name, "%s: users other than its owner may write %s", variable, name)
	default:
		file, err := document.Open(name)
		if err == nil {
			_ = file.Close() // it was not even read
			return nil
		}
		f = fail("key files", "let this user read the file", "%s: %v", variable, err)
	}
	return &f
}

// signing checks whose decisions count.
func (d *doctor) signing() []Finding {
	const check = "signing"
	if d.env.role == roleWorker && d.env.dispatcher.SigningKey == "" {
		list := d.env.worker.ControlKeys
		if _, err := bus.ParseControlKeys(list); err != nil {
			return []Finding{fail(check, "correct LONGSHORE_CONTROL_KEYS", "%v", err)}
		}
		if list == "" {
			return []Finding{ok(check, "off: decisions count without a signature")}
		}
		return []Finding{ok(check, "on: only decisions that LONGSHORE_CONTROL_KEYS have signed count")}
	}
	public, err := fleet.Signing(settings.Dispatcher{SigningKey: d.env.dispatcher.SigningKey, ControlKeys: d.env.dispatcher.ControlKeys})
	switch {
	case err != nil:
		return []Finding{fail(check, "give workers and dispatchers the same LONGSHORE_CONTROL_KEYS, with the public key of each dispatcher (`longshore keys control`)", "%v", err)}
	case public == "":
		return []Finding{ok(check, "off: decisions count without a signature")}
	case d.env.dispatcher.ControlKeys == "":
		return []Finding{warn(check, "set LONGSHORE_CONTROL_KEYS of all workers and dispatchers to "+public, "decisions are signed with %s, but unsigned ones count too", public)}
	default:
		return []Finding{ok(check, "on, with %s", public)}
	}
}
