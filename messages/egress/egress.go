// Package egress is how the fleet calls addresses that others chose: hooks of agents and webhooks of tasks. [Parse]
// reads the hosts that an operator lists, and [Transport] dials nothing before a [Guard] has seen the very address that
// a name has led to, so that a name which changes its mind between two lookups gains nothing. It asks no proxy.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"golang.org/x/net/idna"
)

// Hosts are what an operator listed: names and addresses, in lower case, with a port or without. The zero value lists
// none.
type Hosts struct{ listed map[string]bool }

// Parse reads names such as hooks.example.com, hooks.example.com:8443, 10.1.2.3 and *.example.com, which is each name below
// example.com and not that name itself; empty ones do not count.
func Parse(list []string) (Hosts, error) {
	h := Hosts{map[string]bool{}}
	for _, s := range list {
		s = strings.ToLower(strings.TrimSpace(s))
		if s == "" {
			continue
		}
		if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil && ip.Zone() == "" {
			h.listed[ip.Unmap().String()] = true
			continue
		}
		name, below := strings.CutPrefix(s, "*.")
		u, err := url.Parse("http://" + name)
		if err != nil || u.Host != name || u.Hostname() == "" || strings.ContainsAny(name, "*@/?#%") {
			return Hosts{}, fmt.Errorf("%q is not a host such as hooks.example.com, hooks.example.com:8443 or 10.1.2.3", s)
		}
		host, err := ascii(u.Hostname())
		if err != nil {
			return Hosts{}, fmt.Errorf("%q is not a host: %w", s, err)
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			host = ip.Unmap().String()
		}
		if below {
			host = "*." + host
		}
		if port := u.Port(); port != "" {
			host = net.JoinHostPort(host, port)
		}
		h.listed[host] = true
	}
	return h, nil
}

// Empty reports whether nothing is listed.
func (h Hosts) Empty() bool { return len(h.listed) == 0 }

// Lists reports whether a host with its port, as Endpoint writes it, is listed: with that port, or without any.
func (h Hosts) Lists(endpoint string) bool { return h.lists(endpoint, true) }

// ListsPort reports whether a host with its port, as Endpoint writes it, is listed with that port.
func (h Hosts) ListsPort(endpoint string) bool { return h.lists(endpoint, false) }

func (h Hosts) lists(endpoint string, anyPort bool) bool {
	name, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return false
	}
	if anyPort && h.listed[name] || h.listed[endpoint] {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil { // an address is below no name
		return false
	}
	for {
		_, parent, more := strings.Cut(name, ".")
		if !more {
			return false
		}
		if wild := "*." + parent; anyPort && h.listed[wild] || h.listed[net.JoinHostPort(wild, port)] {
			return true
		}
		name = parent
	}
}

// ListsAddress reports whether an address is listed as one: with that port, or without any.
func (h Hosts) ListsAddress(at netip.AddrPort) bool {
	return h.listed[at.Addr().String()] || h.listed[at.String()]
}

// Endpoint is the host of a URL with its port, in the one form that Lists knows and that is dialled: in lower case, in ASCII,
// without a dot at the end. A host that cannot be written so is empty.
func Endpoint(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return endpoint(u.Hostname(), port)
}

func endpoint(name, port string) string {
	name, err := ascii(strings.TrimSuffix(strings.ToLower(name), "."))
	if err != nil {
		name = ""
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.Unmap().String()
	}
	return net.JoinHostPort(name, port)
}

// ascii writes an internationalised name as net/http does before it dials; other names are as they were.
func ascii(name string) (string, error) {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		return name, nil
	}
	out, err := idna.Lookup.ToASCII(name)
	return strings.TrimSuffix(out, "."), err
}

// Times and sizes of connections.
const (
	dialTimeout = 5 * time.Second
	idleTimeout = 90 * time.Second
	maxHeader   = 64 << 10
)

// Guard decides on a connection right before it is made: to an endpoint that was asked for, at the address that its
// name has led to. What a name resolved to a moment ago does not count.
type Guard func(endpoint string, at netip.AddrPort) error

// Transport dials nothing but what the guard lets it. It asks no proxy: the proxy would dial in its place.
func Transport(may Guard) *http.Transport {
	dial := func(ctx context.Context, network, asked string) (net.Conn, error) {
		name, port, err := net.SplitHostPort(asked)
		if err != nil {
			return nil, fmt.Errorf("dial: %w", err)
		}
		d := &net.Dialer{Timeout: dialTimeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("the address %q cannot be read", address)
			}
			return may(endpoint(name, port), netip.AddrPortFrom(at.Addr().WithZone("").Unmap(), at.Port()))
		}}
		return d.DialContext(ctx, network, asked)
	}
	return &http.Transport{
		DialContext: dial, Proxy: nil, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout: idleTimeout, MaxIdleConns: 64, MaxIdleConnsPerHost: 8, MaxResponseHeaderBytes: maxHeader,
	}
}

// Public reports whether an address is one of the open internet: none of the special-purpose blocks of the IANA registries, none
// that leads to an IPv4 address inside an IPv6 one, and not Metadata.
func Public(ip netip.Addr) bool {
	in := func(p netip.Prefix) bool { return p.Contains(ip) }
	switch {
	case Metadata(ip):
		return false
	case ip.Is4():
		return !slices.ContainsFunc(ssrf.IPv4DeniedPrefixes, in)
	default:
		return ssrf.IPv6GlobalUnicast.Contains(ip) && !slices.ContainsFunc(ssrf.IPv6DeniedPrefixes, in)
	}
}

// Metadata reports whether an address is one where clouds keep what their machines are trusted with: link-local ones, and
// those of Azure, Alibaba Cloud and AWS that are not. A name that an operator listed must not lead there.
func Metadata(ip netip.Addr) bool {
	switch ip.String() {
	case "168.63.129.16", "100.100.100.200", "fd00:ec2::254":
		return true
	default:
		return ip.IsLinkLocalUnicast()
	}
}
