package settings

import "net"

// Health is the environment of `longshore health`: where the process listens that it asks.
type Health struct {
	HTTPAddr string `env:"LONGSHORE_HTTP_ADDR" envDefault:"127.0.0.1:8420" help:"where the dispatcher or worker listens; not port 0"`
	TLSCert  string `env:"LONGSHORE_TLS_CERT"  help:"set: it speaks HTTPS"`
}

// Check returns an *Error.
func (s *Health) Check() error {
	_, port, err := net.SplitHostPort(s.HTTPAddr)
	if err != nil || port == "" || port == "0" {
		return Errorf("LONGSHORE_HTTP_ADDR: %q has no port to ask", s.HTTPAddr)
	}
	return nil
}
