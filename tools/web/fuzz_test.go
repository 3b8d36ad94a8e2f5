package web //nolint:testpackage // parseURL is not for others

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
)

// An address that passes is the same host to the one who judges it and to the one who dials it.
func FuzzURL(f *testing.F) {
	for _, s := range []string{
		"https://example.com/a?b=c#d", "http://①②⑦.0.0.1", "https://a@b", "https://[fe80::1%25eth0]:8", "https://bücher.example:8443/x", "http://0x7f.1", "https://xn--a/", "//a", "https://a.。/", "https://example.com:/", "https://[::ffff:127.0.0.1]",
	} {
		f.Add(s)
	}
	cfg := Config{Hosts: []string{"example.com", "*.example.org"}, PlainHTTP: []string{"example.com"}}
	p, err := newPolicy(&cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := parseURL(s)
		if err != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", s, u, err)
		}
		host := again.Hostname()
		if hosts.Endpoint(again) != hosts.Endpoint(u) || again.User != nil || again.Scheme != "https" && again.Scheme != "http" || host != strings.ToLower(host) {
			t.Fatalf("%q became %q", s, again)
		}
		if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() != "" {
			t.Fatalf("%q has a zone", s)
		}
		if p.judge("GET", u, &messages.Grants{}) == nil && host != "example.com" && !strings.HasSuffix(host, ".example.org") {
			t.Fatalf("%q may be called", s)
		}
	})
}
