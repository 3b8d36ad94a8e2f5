// Package egress is how the fleet calls addresses that others chose: hooks of agents and webhooks of tasks. [Transport] dials nothing before a [Guard] has seen the very address that
// a name has led to, so that a name which changes its mind between two lookups gains nothing. It asks no proxy.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/longshore-run/longshore/messages/hosts"
)

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
			return may(hosts.Join(name, port), netip.AddrPortFrom(at.Addr().WithZone("").Unmap(), at.Port()))
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
