package hosts_test

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/hosts"
)

// Whatever a person lists is refused, or lists itself and no stranger: another name only where the text says "each name below".
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"hooks.example.com", "*.example.com:8443", "10.1.2.3", "[fd00::1]:443", "fd00::1", "bücher.example", "*.*.com", "a@b", "a/b", "a:0", "a:", ":80", "..", "*.", "*.10.1.2.3", "::ffff:10.1.2.3",
		"ｅvil.example", "evil.example。", "a%2eb", "[::1%25eth0]", "0x7f.1", "xn--a", "*.[::1]", " a\t", "a..b", "a.:80",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := hosts.Parse([]string{s})
		if err != nil {
			if h.Lists(net.JoinHostPort(s, "443")) || !h.Empty() {
				t.Errorf("%q is refused and listed", s)
			}
			return
		}
		if h.Empty() {
			if strings.TrimSpace(s) != "" {
				t.Errorf("%q is neither refused nor listed", s)
			}
			return
		}
		text, below := strings.CutPrefix(strings.ToLower(strings.TrimSpace(s)), "*.")
		if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil && !below {
			if at := net.JoinHostPort(ip.Unmap().String(), "443"); !h.Lists(at) || !h.ListsAddress(netip.AddrPortFrom(ip.Unmap(), 443)) {
				t.Errorf("%q does not list %s", s, at)
			}
			return
		}
		u, err := url.Parse("https://" + text)
		if err != nil {
			t.Fatalf("%q is listed and no host: %v", s, err)
		}
		own := hosts.Endpoint(u)
		stranger := "stranger.test:443"
		switch {
		case below && h.Lists(own) && !strings.Contains(own, "*"):
			t.Errorf("%q lists %s itself", s, own)
		case h.Lists(stranger) && own != stranger && (!below || !strings.HasPrefix(own, "test:")):
			t.Errorf("%q lists %s", s, stranger)
		}
		if again, err := hosts.Parse([]string{s, s}); err != nil || again.Lists(own) != h.Lists(own) {
			t.Errorf("%q is read in two ways", s)
		}
	})
}
