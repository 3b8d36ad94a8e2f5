package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// stranger refuses what a web page of another origin asks through the browser of a user who reaches this address, where
// no key is needed. Its own name may lead here too (DNS rebinding), so the name that a request is for must be known.
func (a *API) stranger(r *http.Request) *messages.Problem {
	if !a.knownHost(r) {
		return problemf(http.StatusMisdirectedRequest, messages.CodeForbidden,
			"requests need no key here, so they must be for this machine: add the name to LONGSHORE_HTTP_HOSTS, or set LONGSHORE_AUTH=on")
	}
	if a.origins.Check(r) != nil {
		return forbidden("this comes from a web page of another origin")
	}
	return nil
}

// knownHost reports whether a request is for a name of loopback, one that is configured, or the address that it came to.
func (a *API) knownHost(r *http.Request) bool {
	host, ok := hostOf(r.Host)
	if !ok {
		return slices.Contains(a.cfg.Hosts, "*")
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil && (host == "localhost" || strings.HasSuffix(host, ".localhost")):
		return true
	case err == nil && (ip.Unmap().IsLoopback() || ip.Unmap() == cameTo(r)):
		return true
	}
	return slices.ContainsFunc(a.cfg.Hosts, func(known string) bool {
		known, _ = hostOf(known)
		return known == "*" || known == host
	})
}

// hostOf is the name or address of a Host header, without its port, in lower case.
func hostOf(s string) (string, bool) {
	host := s
	if h, _, err := net.SplitHostPort(s); err == nil {
		host = h
	} else if strings.HasPrefix(s, "[") != strings.HasSuffix(s, "]") || strings.Count(s, ":") == 1 {
		return "", false
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return host, host != ""
}

// cameTo is the address of this machine that a request came to.
func cameTo(r *http.Request) netip.Addr {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return netip.Addr{}
	}
	return addr.Addr().Unmap()
}
