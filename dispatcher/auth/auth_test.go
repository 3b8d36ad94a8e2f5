package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPermissions(t *testing.T) {
	own := map[control.AccessRole]string{ // what each role may within its tenant
		control.RoleViewer: "read", control.RoleSubmitter: "read submit", control.RoleApprover: "read decide",
		control.RoleOperator: "read submit operate", control.RoleAuthor: "read", control.RoleAdmin: "read submit decide operate manage-keys manage-data",
	}
	fleet := map[control.AccessRole]string{ // and more, for all tenants
		control.RoleViewer: " read-fleet", control.RoleOperator: " read-fleet operate-fleet", control.RoleAuthor: " read-fleet author",
		control.RoleAdmin: " read-fleet operate-fleet author grant administer",
	}
	may := func(p auth.Principal) string {
		var got strings.Builder
		for _, what := range control.Permissions() {
			if p.May(what) {
				got.WriteString(" " + string(what))
			}
		}
		return got.String()
	}
	for role, want := range own {
		if got := may(auth.Principal{Tenant: "acme", Roles: []control.AccessRole{role}}); got != " "+want {
			t.Errorf("%s may%s, want %s", role, got, want)
		}
		if more, ok := fleet[role]; ok {
			if got := may(auth.Principal{Tenant: control.AllTenants, Roles: []control.AccessRole{role}}); got != " "+want+more {
				t.Errorf("%s of all tenants may%s", role, got)
			}
		}
	}
	admin := auth.Principal{Tenant: control.AllTenants, Roles: control.AccessRoles()}
	if admin.May("") || admin.May("nothing") {
		t.Error("an operation without a permission is allowed")
	}
	if got := may(auth.Principal{Tenant: control.AllTenants}); got != "" {
		t.Errorf("without a role one may%s", got)
	}
}

func TestIncludes(t *testing.T) {
	p := func(tenant string, roles ...control.AccessRole) *auth.Principal {
		return &auth.Principal{Tenant: tenant, Roles: roles}
	}
	for name, tc := range map[string]struct {
		one, other *auth.Principal
		want       bool
	}{
		"the same":                      {p("acme", control.RoleAdmin), p("acme", control.RoleAdmin), true},
		"less":                          {p("acme", control.RoleAdmin), p("acme", control.RoleSubmitter, control.RoleApprover), true},
		"more":                          {p("acme", control.RoleOperator), p("acme", control.RoleApprover), false},
		"another tenant":                {p("acme", control.RoleAdmin), p("other", control.RoleViewer), false},
		"all tenants":                   {p("acme", control.RoleAdmin), p(control.AllTenants, control.RoleViewer), false},
		"one of all":                    {p(control.AllTenants, control.RoleAdmin), p("acme", control.RoleApprover), true},
		"all of all":                    {p(control.AllTenants, control.RoleAdmin), p(control.AllTenants, control.RoleOperator), true},
		"all of all, but not so much":   {p(control.AllTenants, control.RoleOperator), p(control.AllTenants, control.RoleAdmin), false},
		"what an operator may not do":   {p(control.AllTenants, control.RoleOperator), p("acme", control.RoleAdmin), false},
		"a principal without a role":    {p("acme", control.RoleViewer), p("acme"), true},
		"of another tenant and nothing": {p("acme", control.RoleViewer), p("other"), false},
	} {
		if got := tc.one.Includes(tc.other); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTokensOfNobody(t *testing.T) {
	never := authenticator(func() (*auth.Principal, error) { return nil, errors.New("it was asked") })
	for name, tc := range map[string]struct {
		by    auth.Any
		token string
	}{
		"no key checker":   {auth.Any{Tokens: never}, "lsk_a_b"},
		"no token checker": {auth.Any{Keys: never}, "a.b.c"},
		"the prefix alone": {auth.Any{Keys: never}, "lsk_"},
		"a long one":       {auth.Any{Keys: never, Tokens: never}, string(make([]byte, 8<<10+1))},
	} {
		if p, err := tc.by.Authenticate(t.Context(), tc.token, false); p != nil || !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

type authenticator func() (*auth.Principal, error)

func (a authenticator) Authenticate(context.Context, string, bool) (*auth.Principal, error) {
	return a()
}

func TestFailures(t *testing.T) {
	var f auth.Failures
	now := time.Unix(1_700_000_000, 0)
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for i := range 19 {
		if w := f.Add(one, now); w != 0 {
			t.Fatalf("failure %d waits %s", i, w)
		}
	}
	if w := f.Add(one, now); w != 3*time.Second || f.Wait(one, now) != w {
		t.Errorf("the 20th waits %s, the next one %s", w, f.Wait(one, now))
	}
	for range 1000 { // it does not get worse: who shares the address is not shut out forever
		f.Add(one, now)
	}
	if w := f.Wait(one, now.Add(3*time.Second)); w != 0 {
		t.Errorf("then it still waits %s", w)
	}
	if w := f.Wait(two, now); w != 0 {
		t.Errorf("another waits %s", w)
	}
	if w := f.Wait(netip.Addr{}, now); w != 0 {
		t.Errorf("no failure, but it waits %s", w)
	}
	// Of IPv6 a network of 64 bits is one; an IPv4 address is the same in either form.
	for i := range 20 {
		f.Add(netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i)), now)
	}
	if f.Wait(netip.MustParseAddr("2001:db8::ffff"), now) == 0 || f.Wait(netip.MustParseAddr("2001:db8:0:1::1"), now) != 0 {
		t.Error("networks of IPv6")
	}
	if f.Wait(netip.MustParseAddr("::ffff:192.0.2.1"), now) == 0 {
		t.Error("another form of the address is another address")
	}
}

func TestFailuresAreBounded(t *testing.T) {
	var f auth.Failures
	now := time.Unix(1_700_000_000, 0)
	for i := range 100_000 {
		f.Add(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
		if n := f.Len(); n > 10_000 {
			t.Fatalf("%d addresses are kept", n)
		}
	}
}

// A flood makes few events, and loses no attempt from the count.
func TestDenialsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu      sync.Mutex
			events  int
			omitted uint64
			refuse  = true
		)
		d := auth.NewDenials(func(_ context.Context, tenant, name string, data any) error {
			mu.Lock()
			defer mu.Unlock()
			if refuse { // as while NATS is away
				return errors.New("no answer")
			}
			a, ok := data.(control.AuthDenied)
			if !ok || name != control.EventAuthDenied || tenant == "" {
				t.Errorf("%s of %s: %v", name, tenant, data)
			}
			if a.Omitted > 0 {
				omitted += a.Omitted
			} else {
				events++
			}
			return nil
		}, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = d.Run(ctx) })
		const seconds, flood = 5, 1000
		for i := range seconds {
			if i == 1 {
				mu.Lock()
				refuse = false
				mu.Unlock()
			}
			for range flood {
				d.Tell("acme", control.AuthDenied{Code: messages.CodeForbidden})
			}
			time.Sleep(time.Second)
		}
		stop()
		running.Wait()
		if events > 20+seconds || events == 0 {
			t.Errorf("%d events in %d seconds", events, seconds)
		}
		if got := uint64(events) + omitted; got != seconds*flood || d.Total() != seconds*flood {
			t.Errorf("reported %d, counted %d, want %d", got, d.Total(), seconds*flood)
		}
	})
}
