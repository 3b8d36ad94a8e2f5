package settings_test

import (
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
)

func TestAccessSettings(t *testing.T) {
	on := func(more ...string) []string { return append([]string{"LONGSHORE_AUTH=on"}, more...) }
	jwt := func(more ...string) []string {
		return on(append([]string{"LONGSHORE_JWKS_URL=https://id.example.com/jwks", "LONGSHORE_JWT_ISSUER=i", "LONGSHORE_JWT_AUDIENCE=a"}, more...)...)
	}
	const refused = "the HTTP address"
	for name, tc := range map[string]struct {
		set  []string
		want string
	}{
		"loopback":                   {[]string{"LONGSHORE_HTTP_ADDR=127.0.0.1:1"}, ""},
		"another loopback":           {[]string{"LONGSHORE_HTTP_ADDR=127.8.9.1:1"}, ""},
		"loopback of IPv6":           {[]string{"LONGSHORE_HTTP_ADDR=[::1]:1"}, ""},
		"localhost":                  {[]string{"LONGSHORE_HTTP_ADDR=localhost:1"}, ""},
		"everywhere":                 {[]string{"LONGSHORE_HTTP_ADDR=:1"}, refused},
		"everywhere of IPv4":         {[]string{"LONGSHORE_HTTP_ADDR=0.0.0.0:1"}, refused},
		"everywhere of IPv6":         {[]string{"LONGSHORE_HTTP_ADDR=[::]:1"}, refused},
		"an address":                 {[]string{"LONGSHORE_HTTP_ADDR=192.0.2.1:1"}, refused},
		"a name":                     {[]string{"LONGSHORE_HTTP_ADDR=localhost.example.com:1"}, refused},
		"everywhere with auth":       {on("LONGSHORE_HTTP_ADDR=:1"), ""},
		"everywhere behind a proxy":  {[]string{"LONGSHORE_HTTP_ADDR=:1", "LONGSHORE_AUTH=off-behind-proxy"}, ""},
		"a strange switch":           {[]string{"LONGSHORE_AUTH=yes"}, "LONGSHORE_AUTH: \"yes\" is not"},
		"JWTs":                       {jwt(), ""},
		"JWTs by a file":             {jwt("LONGSHORE_JWKS_URL=/etc/jwks.json"), ""},
		"JWTs by http of here":       {jwt("LONGSHORE_JWKS_URL=http://127.0.0.1:1/jwks"), ""},
		"JWTs by http":               {jwt("LONGSHORE_JWKS_URL=http://id.example.com/jwks"), "LONGSHORE_JWKS_URL: must be"},
		"JWTs with a password":       {jwt("LONGSHORE_JWKS_URL=https://me:pa55word@id.example.com/jwks"), "LONGSHORE_JWKS_URL: must be"},
		"JWTs by a strange scheme":   {jwt("LONGSHORE_JWKS_URL=ftp://id.example.com/jwks"), "LONGSHORE_JWKS_URL: must be"},
		"JWTs without auth":          {jwt("LONGSHORE_AUTH=off"), "LONGSHORE_JWKS_URL is set"},
		"JWTs of any issuer":         {jwt("LONGSHORE_JWT_ISSUER="), "LONGSHORE_JWT_ISSUER is missing"},
		"JWTs for any audience":      {jwt("LONGSHORE_JWT_AUDIENCE="), "LONGSHORE_JWT_AUDIENCE is missing"},
		"an issuer without keys":     {on("LONGSHORE_JWT_ISSUER=i"), "LONGSHORE_JWKS_URL is missing"},
		"TLS":                        {[]string{"LONGSHORE_TLS_CERT=a", "LONGSHORE_TLS_KEY=b"}, ""},
		"TLS does not replace a key": {[]string{"LONGSHORE_TLS_CERT=a", "LONGSHORE_TLS_KEY=b", "LONGSHORE_HTTP_ADDR=:1"}, refused},
		"half of TLS":                {[]string{"LONGSHORE_TLS_CERT=a"}, "LONGSHORE_TLS_CERT and LONGSHORE_TLS_KEY"},
		"the other half":             {[]string{"LONGSHORE_TLS_KEY=a"}, "LONGSHORE_TLS_CERT and LONGSHORE_TLS_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			var s settings.Dispatcher
			check(t, settings.Load(&s, with(tc.set)), tc.want)
		})
	}
}

func TestExposedAddresses(t *testing.T) {
	for addr, want := range map[string]bool{
		"": true, ":0": true, "0.0.0.0:1": true, "[::]:1": true, "192.0.2.1:1": true, "example.com:1": true, "[::ffff:192.0.2.1]:1": true,
		"127.0.0.1:1": false, "[::1]:1": false, "[::ffff:127.0.0.1]:1": false, "localhost:1": false, "nowhere": false, "-": false,
	} {
		if got := settings.IsExposed(addr); got != want {
			t.Errorf("%q: %v", addr, got)
		}
	}
}
