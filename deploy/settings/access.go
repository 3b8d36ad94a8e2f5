package settings

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Access says who may ask a dispatcher over HTTP.
type Access struct {
	Auth        string   `env:"LONGSHORE_AUTH"         envDefault:"off" help:"on: requests over HTTP need an API key or a JWT; off: they need none, on loopback only; off-behind-proxy: none on any address, because a proxy authenticates"`
	MetricsOpen bool     `env:"LONGSHORE_METRICS_OPEN" envDefault:"false" help:"/metrics needs no key when LONGSHORE_AUTH is on, and accepts any host name when it is not"`
	Hosts       []string `env:"LONGSHORE_HTTP_HOSTS"   help:"host names by which the HTTP API is reached without keys, comma separated, in addition to loopback; *: any"`
	Connections int      `env:"LONGSHORE_HTTP_CONNECTIONS" envDefault:"40000" help:"maximum number of connections to the HTTP server"`
	PerAddress  int      `env:"LONGSHORE_HTTP_CONNECTIONS_PER_ADDRESS" envDefault:"20000" help:"maximum number of connections per address; an IPv6 /64 counts as one"`
	JWKS        string   `env:"LONGSHORE_JWKS_URL"     help:"public keys of the identity provider: an https address, or a file (default: no JWT is accepted)"`
	Issuer      string   `env:"LONGSHORE_JWT_ISSUER"   help:"iss of its JWTs; required with LONGSHORE_JWKS_URL"`
	Audience    string   `env:"LONGSHORE_JWT_AUDIENCE" help:"value that the aud of its JWTs must contain; required with LONGSHORE_JWKS_URL"`
	TenantClaim string   `env:"LONGSHORE_JWT_TENANT_CLAIM" envDefault:"tenant" help:"claim with the tenant, or * for all; dots refer to nested claims"`
	RolesClaim  string   `env:"LONGSHORE_JWT_ROLES_CLAIM"  envDefault:"roles"  help:"claim with the roles, a list or a space-separated string; dots refer to nested claims"`
	TLSCert     string   `env:"LONGSHORE_TLS_CERT"     help:"file with the certificate of the HTTP server and its chain, PEM; reloaded when it changes"`
	TLSKey      string   `env:"LONGSHORE_TLS_KEY"      help:"file with its private key, PEM"`
}

// Values of LONGSHORE_AUTH.
const (
	AuthOn          = "on"
	AuthOff         = "off"
	AuthBehindProxy = "off-behind-proxy"
)

// On reports whether requests need a key. The zero value is off.
func (s *Access) On() bool { return s.Auth == AuthOn }

// Check returns an *Error.
func (s *Access) Check() error {
	switch s.Auth {
	case AuthOn, AuthOff, AuthBehindProxy:
	default:
		return Errorf("LONGSHORE_AUTH: %q is not on, off or off-behind-proxy", s.Auth)
	}
	for _, name := range s.Hosts {
		if name != "*" && (name == "" || strings.ContainsAny(name, "/ *@?#")) {
			return Errorf("LONGSHORE_HTTP_HOSTS: %q is not the name or address of a host", name)
		}
	}
	switch {
	case s.Connections < 1 || s.PerAddress < 1:
		return Errorf("LONGSHORE_HTTP_CONNECTIONS and LONGSHORE_HTTP_CONNECTIONS_PER_ADDRESS must be above 0")
	case s.JWKS == "" && (s.Issuer != "" || s.Audience != ""):
		return Errorf("LONGSHORE_JWKS_URL is missing: LONGSHORE_JWT_ISSUER or LONGSHORE_JWT_AUDIENCE is set")
	case s.JWKS != "" && !s.On():
		return Errorf("LONGSHORE_JWKS_URL is set, but no JWT is asked for: set LONGSHORE_AUTH=on")
	case s.JWKS != "" && s.Issuer == "":
		return Errorf("LONGSHORE_JWT_ISSUER is missing: the iss of the JWTs that count")
	case s.JWKS != "" && s.Audience == "":
		return Errorf("LONGSHORE_JWT_AUDIENCE is missing: the aud of the JWTs that are for this fleet")
	case s.TenantClaim == "" || s.RolesClaim == "":
		return Errorf("LONGSHORE_JWT_TENANT_CLAIM and LONGSHORE_JWT_ROLES_CLAIM must not be empty")
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return Errorf("LONGSHORE_TLS_CERT and LONGSHORE_TLS_KEY go together: give both or none")
	}
	if strings.Contains(s.JWKS, "://") {
		u, err := url.Parse(s.JWKS)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Host)) {
			return Errorf("LONGSHORE_JWKS_URL: must be an https address, without a password in it, or a file")
		}
	}
	return nil
}

// Names are those by which the HTTP API may be reached without keys, besides those of loopback: that of the address that it
// listens on too.
func (s *Access) Names(addr string) []string {
	names := slices.Clone(s.Hosts)
	if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
		names = append(names, host)
	}
	return names
}

// CheckListen returns an *Error, which names the variable or flag, for an invalid listen address. An empty one is valid.
func CheckListen(name, addr string) error {
	if addr == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return Errorf("%s: %v: it must be one such as 127.0.0.1:8420", name, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Errorf("%s: address %s: the port must be a number up to 65535, or 0 for a free one", name, addr)
	}
	return nil
}

// CheckAddress returns an *Error when the HTTP server must not listen on an address, for want of auth.
func (s *Access) CheckAddress(addr string) error {
	if s.On() || s.Auth == AuthBehindProxy || !IsExposed(addr) {
		return nil
	}
	return Errorf("the HTTP address %s is not loopback, and requests need no key: set LONGSHORE_AUTH=on (and make a key with "+
		"`longshore keys api create`), or LONGSHORE_AUTH=off-behind-proxy if a proxy in front of it authenticates", addr)
}

// IsExposed reports whether a listen address is reachable from other machines. An empty host means all addresses; an address
// without a port is invalid, and listening on it fails.
func IsExposed(addr string) bool {
	_, _, err := net.SplitHostPort(addr)
	return addr == "" || err == nil && !isLoopback(addr)
}

// isLoopback reports whether an address, with or without a port, is this machine's alone. A name is not, but for localhost.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = strings.Trim(addr, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
