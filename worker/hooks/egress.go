package hooks

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/longshore-run/longshore/messages/egress"
	"github.com/longshore-run/longshore/messages/hosts"
)

// check reports whether the operator listed the host of a URL. One that is listed without a port may be called on any.
func check(listed hosts.List, u *url.URL) error {
	switch at := hosts.Endpoint(u); {
	case listed.Empty():
		return errors.New("HTTP hooks are off: the operator lists the hosts that may be called in LONGSHORE_HOOK_HOSTS")
	case !listed.Lists(at):
		return fmt.Errorf("the host %s is not one that the operator listed in LONGSHORE_HOOK_HOSTS", at)
	}
	return nil
}

// guard refuses addresses that are not of the open internet, unless the operator listed them or allowed all.
func guard(listed hosts.List, private bool) egress.Guard {
	return func(_ string, at netip.AddrPort) error {
		if private || listed.ListsAddress(at) || egress.Public(at.Addr()) {
			return nil
		}
		return fmt.Errorf("the address %s is not public; list it in LONGSHORE_HOOK_HOSTS, with that port or without a port, or set LONGSHORE_HOOK_PRIVATE", at)
	}
}
