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
