package outbound

import (
	"errors"
	"net"
	"net/netip"

	"github.com/longshore-run/longshore/messages/egress"
	"github.com/longshore-run/longshore/messages/hosts"
)

// ErrAddress means that a name has led to an address that must not be called. Its text does not tell which.
var ErrAddress = errors.New("the host resolves to an address that is not public, and the operator did not list it as private")

// Guard lets the open internet be dialled; an address that is listed and was asked for as one; and what private lists. A name
// that private lists never leads to where clouds keep what their machines are trusted with.
func Guard(hosts, private hosts.List) egress.Guard {
	return func(endpoint string, at netip.AddrPort) error {
		ip := at.Addr()
		if egress.Public(ip) || asked(endpoint, ip) && (hosts.Lists(endpoint) || private.Lists(endpoint)) ||
			private.Lists(endpoint) && !egress.Metadata(ip) {
			return nil
		}
		return ErrAddress
	}
}

// asked reports whether an endpoint is the address itself and no name for it.
func asked(endpoint string, ip netip.Addr) bool {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return false
	}
	literal, err := netip.ParseAddr(host)
	return err == nil && literal == ip
}
