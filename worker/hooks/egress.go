package hooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// hosts are what the operator listed: names and addresses, in lower case, with a port or without.
type hosts struct {
	listed map[string]bool
	ips    map[netip.Addr]bool // listed as addresses: they may be private
}

func parseHosts(list []string) (hosts, error) {
	h := hosts{map[string]bool{}, map[netip.Addr]bool{}}
	for _, s := range list {
		s = strings.ToLower(strings.TrimSpace(s))
		if s == "" {
			continue
		}
		if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil && ip.Zone() == "" {
			h.listed[ip.Unmap().String()], h.ips[ip.Unmap()] = true, true
			continue
		}
		u, err := url.Parse("http://" + s)
		if err != nil || u.Host != s || u.Hostname() == "" || strings.ContainsAny(s, "*@/?#%") {
			return hosts{}, fmt.Errorf("%q is not a host such as hooks.example.com, hooks.example.com:8443 or 10.1.2.3", s)
		}
		host := u.Hostname()
		if ip, err := netip.ParseAddr(host); err == nil {
			h.ips[ip.Unmap()] = true
			host = ip.Unmap().String()
		}
		if port := u.Port(); port != "" {
			host = net.JoinHostPort(host, port)
		}
		h.listed[host] = true
	}
	return h, nil
}

// check tells whether the operator listed the host of a URL. One that is listed without a port may be called on any.
func (h hosts) check(u *url.URL) error {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.Unmap().String()
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	switch {
	case len(h.listed) == 0:
		return errors.New("HTTP hooks are off: the operator lists the hosts that may be called in LONGSHORE_HOOK_HOSTS")
	case !h.listed[name] && !h.listed[net.JoinHostPort(name, port)]:
		return fmt.Errorf("the host %s is not one that the operator listed in LONGSHORE_HOOK_HOSTS", net.JoinHostPort(name, port))
	}
	return nil
}

// Times and sizes of connections.
const (
	dialTimeout = 5 * time.Second
	idleTimeout = 90 * time.Second
	maxHeader   = 64 << 10
)

// transport dials nothing but what may be dialled. It asks no proxy: the proxy would dial in its place.
func transport(h hosts, private bool) *http.Transport {
	d := &net.Dialer{Timeout: dialTimeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return h.mayDial(address, private)
	}}
	return &http.Transport{
		DialContext: d.DialContext, Proxy: nil, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout: idleTimeout, MaxIdleConns: 64, MaxIdleConnsPerHost: 8, MaxResponseHeaderBytes: maxHeader,
	}
}

// mayDial decides on the address that a name has led to, right before the connection is made: what a name resolved to
// a moment ago does not count.
func (h hosts) mayDial(address string, private bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address %q cannot be read", address)
	}
	ip := at.Addr().WithZone("").Unmap()
	if private || h.ips[ip] || public(ip) {
		return nil
	}
	return fmt.Errorf("the address %s is not of the open internet; list it in LONGSHORE_HOOK_HOSTS, or set LONGSHORE_HOOK_PRIVATE", ip)
}

// public tells whether an address is one of the open internet.
func public(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, p := range closed() {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// closed are the special-purpose blocks that net/netip has no word for (the IANA registries of RFC 6890), and those
// that lead to an IPv4 address inside an IPv6 one.
func closed() (out []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
	} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}
