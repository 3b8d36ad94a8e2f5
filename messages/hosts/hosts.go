// Package hosts reads lists of hosts that people write, and reports whether an address is on one. It dials nothing: package egress
// does.
package hosts

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// List is what an operator or an agent listed: names and addresses, in lower case, with a port or without. The zero value lists
// none.
type List struct{ listed map[string]bool }

// Parse reads names such as hooks.example.com, hooks.example.com:8443, 10.1.2.3 and *.example.com, which is each name below
// example.com and not that name itself; empty ones do not count.
func Parse(list []string) (List, error) {
	h := List{map[string]bool{}}
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
			return List{}, fmt.Errorf("%q is not a host such as hooks.example.com, hooks.example.com:8443 or 10.1.2.3", s)
		}
		host, err := ascii(u.Hostname())
		if err != nil {
			return List{}, fmt.Errorf("%q is not a host: %w", s, err)
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
func (h List) Empty() bool { return len(h.listed) == 0 }

// Lists reports whether a host with its port, as Endpoint writes it, is listed: with that port, or without any.
func (h List) Lists(endpoint string) bool { return h.lists(endpoint, true) }

// ListsPort reports whether a host with its port, as Endpoint writes it, is listed with that port.
func (h List) ListsPort(endpoint string) bool { return h.lists(endpoint, false) }

func (h List) lists(endpoint string, anyPort bool) bool {
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
func (h List) ListsAddress(at netip.AddrPort) bool {
	return h.listed[at.Addr().String()] || h.listed[at.String()]
}

// Endpoint is the host of a URL with its port, in the one form that Lists knows and that is dialled: in lower case, in ASCII,
// without a dot at the end. A host that cannot be written so is empty.
func Endpoint(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return Join(u.Hostname(), port)
}

// Join is the endpoint of a name or an address and a port.
func Join(name, port string) string {
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
