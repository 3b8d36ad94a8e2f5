//go:build unix

package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
)

// guarded is a server with the configuration of deploy/nats, and a second tenant made as its comment says.
type guarded struct {
	t    *testing.T
	opts *server.Options
	url  string

	mu     sync.Mutex
	denied []string // violations that the server has logged
	refuse func()   // called at each; may be nil
}

var _ server.Logger = (*guarded)(nil)

// startGuarded reads the configuration as nats-server does. More users are added to the account of the fleet.
func startGuarded(t *testing.T, more ...*server.User) *guarded {
	t.Helper()
	return startGuardedBy(t, guardedConfig(t), more...)
}

// startGuardedBy is startGuarded with a changed copy of the configuration.
func startGuardedBy(t *testing.T, config string, more ...*server.User) *guarded {
	t.Helper()
	g := &guarded{t: t}
	opts, err := server.ProcessConfigFile(config)
	if err != nil {
		t.Fatal(err)
	}
	g.opts = opts
	opts.Port, opts.StoreDir, opts.NoSigs = -1, t.TempDir(), true
	for _, a := range opts.Accounts {
		if user, ok := map[string]string{"LONGSHORE": observer, "acme": insider}[a.Name]; ok {
			opts.Users = append(opts.Users, &server.User{Username: user, Password: password(user), Account: a})
		}
		for _, u := range more {
			if a.Name == "LONGSHORE" {
				u.Account = a
				opts.Users = append(opts.Users, u)
			}
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.SetLoggerV2(g, false, false, false)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	g.url = strings.TrimPrefix(s.ClientURL(), "nats://")
	return g
}

// guardedConfig copies deploy/nats, with tenant harbour in addition to tenant acme, and sets a password for every user.
func guardedConfig(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("..", "nats", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	harbour := func(s string) string {
		return strings.NewReplacer("acme", "harbour", "ACME", "HARBOUR").Replace(s)
	}
	main, tenant := read("longshore.conf"), read("tenant-acme.conf")
	for line := range strings.SplitSeq(main, "\n") {
		if strings.Contains(line, "include tenant-acme.conf") {
			main = strings.Replace(main, line, line+"\n"+harbour(line), 1)
		}
	}
	for name, content := range map[string]string{
		"nats-server.conf": read("nats-server.conf"), "longshore.conf": main,
		"tenant-acme.conf": tenant, "tenant-harbour.conf": harbour(tenant),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range regexp.MustCompile(`user: (\S+), password: \$(\w+)`).FindAllStringSubmatch(main+tenant+harbour(tenant), -1) {
		t.Setenv(m[2], password(m[1]))
	}
	return filepath.Join(dir, "nats-server.conf")
}

func password(user string) string { return "pw-of-" + user }

// address is the server for a user, with his password.
func (g *guarded) address(user string) string {
	return "nats://" + user + ":" + password(user) + "@" + g.url
}

// inboxOf is the inbox prefix of a user.
func inboxOf(user string) string { return "_INBOX_" + strings.ReplaceAll(user, "-", "_") }

func (g *guarded) connect(user string) *nats.Conn {
	g.t.Helper()
	nc, err := bus.Connect(g.t.Context(), bus.ConnConfig{URL: g.address(user), Name: user, InboxPrefix: inboxOf(user)})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(nc.Close)
	return nc
}

// violations are those since the last call.
func (g *guarded) violations() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.denied
	g.denied = nil
	return out
}

// onRefusal has f called at each violation.
func (g *guarded) onRefusal(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = f
}

// Errorf keeps what the server says about permissions.
func (g *guarded) Errorf(format string, v ...any) {
	if text := fmt.Sprintf(format, v...); strings.Contains(text, "Violation") {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.denied = append(g.denied, text)
		if g.refuse != nil {
			g.refuse()
		}
	}
}

// Fatalf implements server.Logger.
func (g *guarded) Fatalf(format string, v ...any) { g.t.Errorf("nats server: "+format, v...) }

// Warnf discards.
func (*guarded) Warnf(string, ...any) {}

// Noticef discards.
func (*guarded) Noticef(string, ...any) {}

// Debugf discards.
func (*guarded) Debugf(string, ...any) {}

// Tracef discards.
func (*guarded) Tracef(string, ...any) {}

// subjectsDenied is what is denied in a list of violations, each subject once.
func subjectsDenied(violations []string) []string {
	var out []string
	quoted := regexp.MustCompile(`"([^"]+)"`)
	for _, v := range violations {
		what := "publish "
		if strings.Contains(v, "Subscription") {
			what = "subscribe "
		}
		user := "?"
		if m := regexp.MustCompile(`(?i)user:?\s*"?([\w-]+)`).FindStringSubmatch(v); m != nil {
			user = m[1]
		}
		subject := v
		if all := quoted.FindAllStringSubmatch(v, -1); len(all) > 0 {
			subject = all[len(all)-1][1]
		}
		out = append(out, user+": "+what+subject)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// try publishes or subscribes as a user and reports whether the server refused.
func (g *guarded) try(nc *nats.Conn, subscribe bool, subject string) (refused bool) {
	g.t.Helper()
	g.violations()
	if subscribe {
		sub, err := nc.SubscribeSync(subject)
		if err != nil {
			g.t.Fatal(err)
		}
		defer func() { _ = sub.Unsubscribe() }() // it is invalid when it was refused
	} else if err := nc.Publish(subject, []byte("{}")); err != nil {
		g.t.Fatal(err)
	}
	if err := nc.FlushTimeout(patience); err != nil {
		g.t.Fatal(err)
	}
	return len(g.violations()) > 0
}

// Users who may do anything in an account, in tests alone.
const (
	observer = "observer" // in the fleet's
	insider  = "insider"  // in that of tenant acme
)

const guardedAckWait = 10 * time.Second
