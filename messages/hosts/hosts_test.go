package hosts_test

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/longshore-run/longshore/messages/hosts"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	h, err := hosts.Parse([]string{"Hooks.Example.com", "other.example.com:8443", "10.1.2.3", "[fd00::1]:443", " "})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"https://hooks.example.com./a": true, "http://HOOKS.example.com:81": true, "https://other.example.com:8443": true,
		"https://other.example.com": false, "https://hooks.example.com.evil.net": false, "http://10.1.2.3:9": true,
		"http://[::ffff:10.1.2.3]": true, "https://[fd00:0::1]": true, "http://[fd00::1]": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Lists(hosts.Endpoint(u)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	for address, want := range map[string]bool{
		"10.1.2.3:80": true, "10.1.2.3:9": true, "10.1.2.4:80": false, "[fd00::1]:443": true, "[fd00::1]:80": false,
	} {
		if got := h.ListsAddress(netip.MustParseAddrPort(address)); got != want {
			t.Errorf("the address %s: %v", address, got)
		}
	}
}

func TestHostsBelowAName(t *testing.T) {
	t.Parallel()
	h, err := hosts.Parse([]string{"*.Example.com", "*.other.example:8443"})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"https://a.example.com": true, "https://a.b.example.com:81": true, "https://example.com": false, "https://aexample.com": false,
		"https://a.example.com.evil.net": false, "https://a.other.example:8443": true, "https://a.other.example": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Lists(hosts.Endpoint(u)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	for _, bad := range []string{"*", "*.", "**.example.com", "a.*.example.com", "*.*.example.com", "*example.com"} {
		if _, err := hosts.Parse([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestPortsOfHosts(t *testing.T) {
	t.Parallel()
	h, err := hosts.Parse([]string{"a.example.com", "*.b.example.com:8443", "bücher.example:8443"})
	if err != nil {
		t.Fatal(err)
	}
	for endpoint, want := range map[string]bool{
		"a.example.com:443": false, "x.b.example.com:8443": true, "x.b.example.com:443": false, "xn--bcher-kva.example:8443": true,
	} {
		if got := h.ListsPort(endpoint); got != want {
			t.Errorf("%s: %v", endpoint, got)
		}
	}
}

// A host is compared in the form in which it is dialled.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://Bücher.example": "xn--bcher-kva.example:443", "https://１２７.0.0.1/": "127.0.0.1:443", "http://①②⑦.0.0.1": "127.0.0.1:80",
		"https://a.example.com。/": "a.example.com:443", "https://[::ffff:10.1.2.3]:8": "10.1.2.3:8", "https://a\u00adb.example": "ab.example:443",
		"https://xn--a.example": "xn--a.example:443", "https://ab\ufffd.example": ":443",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := hosts.Endpoint(u); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
