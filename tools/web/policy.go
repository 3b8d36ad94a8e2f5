package web

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxURL bounds an address, and so what one can carry away, in bytes.
const maxURL = 8 << 10

// parseURL reads an address and puts its host in the form in which it is dialled. The error is fit for a model.
func parseURL(s string) (*url.URL, error) {
	if len(s) > maxURL {
		return nil, fmt.Errorf("is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" {
		return nil, errors.New("is not an address such as https://example.com/path")
	}
	return u, normalise(u)
}

// normalise puts the host of an address in the form in which it is dialled.
func normalise(u *url.URL) error {
	at := hosts.Endpoint(u)
	host, port := at[:strings.LastIndexByte(at, ':')], at[strings.LastIndexByte(at, ':')+1:]
	name := strings.Trim(host, "[]")
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("must begin with https:// (or http:// where the operator allows it)")
	case u.User != nil:
		return errors.New("must not hold a user or a password: use a credential")
	case strings.Contains(name, "%"):
		return errors.New("must not hold the zone of an address")
	case name == "" || len(name) > 253 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("has no host that can be called")
	case looksNumeric(name):
		return errors.New("holds an address in an unusual form: write it as 192.0.2.1 or [2001:db8::1]")
	}
	u.Host = host
	if port != defaultPort(u) {
		u.Host = at
	}
	u.Fragment, u.RawFragment = "", ""
	return nil
}

// looksNumeric reports whether a name is none, but an IPv4 address as only some resolvers read it: 2130706433, 0x7f.1.
func looksNumeric(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func defaultPort(u *url.URL) string {
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}

// judge reports whether a request may be made, by what the operator grants and the agent leaves of it. It asks no name server.
// The error is fit for a model.
func (p *policy) judge(method string, u *url.URL, g *messages.Grants) error {
	at := hosts.Endpoint(u)
	left, err := hosts.Parse(g.Hosts)
	switch {
	case err != nil:
		return fmt.Errorf("grants.hosts of the agent cannot be read: %w", err)
	case !slices.Contains(p.methods, method):
		return fmt.Errorf("the method %s is not one that the operator lists (%s)", strict.Clip(method, 32), strings.Join(p.methods, ", "))
	case !messages.Leaves(g.Methods, method):
		return fmt.Errorf("the method %s is not in the agent's grants", method)
	case !listed(p.hosts, u):
		return fmt.Errorf("the host %s is not one that the operator lists", at)
	case g.Hosts != nil && !left.Lists(at):
		return fmt.Errorf("the host %s is not in the agent's grants", at)
	case u.Scheme == "http" && !listed(p.plain, u):
		return fmt.Errorf("%s may be called over https alone", at)
	default:
		return nil
	}
}

// listed reports whether the operator lists the host of an address: a host without a port stands for the port of the scheme.
func listed(h hosts.List, u *url.URL) bool {
	at := hosts.Endpoint(u)
	if strings.HasSuffix(at, ":"+defaultPort(u)) {
		return h.Lists(at)
	}
	return h.ListsPort(at)
}
