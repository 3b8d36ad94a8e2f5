package egress_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"testing"

	"github.com/longshore-run/longshore/messages/egress"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true,
		"10.1.2.4": false, "127.0.0.1": false, "0.0.0.0": false, "169.254.169.254": false, "172.16.0.1": false,
		"192.168.1.1": false, "100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
		"::1": false, "::": false, "fe80::1": false, "fd00::2": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
		"::7f00:1": false, "ff02::1": false, "fec0::1": false,
		"168.63.129.16": false, "100.100.100.200": false, "fd00:ec2::254": false, "192.0.0.192": false, "240.0.0.1": false,
		"::ffff:127.0.0.1": false, "64:ff9b::a9fe:a9fe": false, "0.1.2.3": false, "2001:db8::1": false, "3fff::1": false, "5f00::1": false,
	} {
		if got := egress.Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	h, err := egress.Parse([]string{"Hooks.Example.com", "other.example.com:8443", "10.1.2.3", "[fd00::1]:443", " "})
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
		if got := h.Lists(egress.Endpoint(u)); got != want {
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
	h, err := egress.Parse([]string{"*.Example.com", "*.other.example:8443"})
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
		if got := h.Lists(egress.Endpoint(u)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	for _, bad := range []string{"*", "*.", "**.example.com", "a.*.example.com", "*.*.example.com", "*example.com"} {
		if _, err := egress.Parse([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestPortsOfHosts(t *testing.T) {
	t.Parallel()
	h, err := egress.Parse([]string{"a.example.com", "*.b.example.com:8443", "bücher.example:8443"})
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
		if got := egress.Endpoint(u); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// The guard sees the address that a name has led to, and what it refuses is never dialled.
func TestTheGuardSeesTheAddress(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("dialled") }))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	refusal := errors.New("not this one")
	tr := egress.Transport(func(endpoint string, at netip.AddrPort) error {
		if endpoint != "localhost:"+u.Port() || !at.Addr().IsLoopback() || strconv.Itoa(int(at.Port())) != u.Port() {
			t.Errorf("%s at %s", endpoint, at)
		}
		return refusal
	})
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://LocalHost:"+u.Port(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, refusal) {
		t.Errorf("error %v", err)
	}
}
