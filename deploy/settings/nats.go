package settings

import (
	"log/slog"
	"net/url"
	"strings"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/document"
)

// maxSecretFile bounds a file with credentials or certificates, in bytes.
const maxSecretFile = 1 << 20

// NATS says how to reach the message store.
type NATS struct {
	URL         string `env:"NATS_URL"          help:"servers, comma separated: nats://host:4222"`
	Credentials string `env:"NATS_CREDS"        help:"file with JWT credentials"`
	NKey        string `env:"NATS_NKEY"         help:"file with an nkey seed"`
	CA          string `env:"NATS_CA"           help:"file with the CA certificates of the servers"`
	InboxPrefix string `env:"NATS_INBOX_PREFIX" help:"prefix of reply subjects, if permissions require one"`
}

// Conn is how a process of this name connects.
func (s *NATS) Conn(name string, log *slog.Logger) bus.ConnConfig {
	return bus.ConnConfig{URL: s.URL, Name: name, CredsFile: s.Credentials, NKeyFile: s.NKey, CAFile: s.CA, InboxPrefix: s.InboxPrefix, Log: log}
}

// Check returns an *Error.
func (s *NATS) Check() error {
	if s.URL == "" {
		return Errorf("NATS_URL is missing: the address of the message store, such as nats://127.0.0.1:4222")
	}
	for u := range strings.SplitSeq(s.URL, ",") {
		p, err := url.Parse(strings.TrimSpace(u))
		if err != nil || p.Host == "" {
			return Errorf("NATS_URL: not an address such as nats://127.0.0.1:4222")
		}
		switch p.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return Errorf("NATS_URL: the scheme must be nats, tls, ws or wss")
		}
	}
	if s.Credentials != "" && s.NKey != "" {
		return Errorf("NATS_CREDS and NATS_NKEY contradict each other: give one")
	}
	for _, f := range []struct{ name, file string }{{"NATS_CREDS", s.Credentials}, {"NATS_NKEY", s.NKey}, {"NATS_CA", s.CA}} {
		if f.file == "" {
			continue
		}
		if _, err := document.Read(f.file, maxSecretFile); err != nil { // before the NATS library reads all of it
			return Errorf("%s: %v", f.name, err)
		}
	}
	return nil
}

// Client is the environment of the client commands.
type Client struct {
	NATS
	Tenant string `env:"LONGSHORE_TENANT"      help:"the tenant of commands without --tenant (default \"default\")"`
	Scoped bool   `env:"LONGSHORE_NATS_SCOPED" envDefault:"false" help:"whether the NATS user is limited to LONGSHORE_TENANT"`
	API    string `env:"LONGSHORE_URL"         help:"the address of a dispatcher's HTTP API, such as https://longshore.example.com, instead of NATS_URL"`
	Key    string `env:"LONGSHORE_API_KEY"     secret:"true" help:"an API key or a JWT, for LONGSHORE_URL"`
	Links
}

// localNATS is where `longshore dev` has NATS: the default of a client.
const localNATS = "nats://127.0.0.1:4222"

// Check returns an *Error.
func (s *Client) Check() error {
	if err := s.Links.Check(); err != nil {
		return err
	}
	switch {
	case s.API != "" && s.URL != "":
		return Errorf("LONGSHORE_URL and NATS_URL are both set: unset one, they may be two fleets")
	case s.API != "":
		return nil // the client says what is wrong with it
	case s.Key != "":
		return Errorf("LONGSHORE_API_KEY is for a dispatcher's HTTP API: set LONGSHORE_URL too")
	case s.URL == "":
		s.URL = localNATS
	}
	if s.Scoped && s.Tenant == "" {
		return Errorf("LONGSHORE_TENANT is missing: LONGSHORE_NATS_SCOPED says that the NATS user is bound to it")
	}
	return s.NATS.Check()
}

// NeedNATS returns an *Error if the environment names a dispatcher's HTTP API and no NATS server, for a command that does over NATS what
// the API has no requests for. The reason says what that is.
func NeedNATS(environ []string, reason string) error {
	var s Client
	if err := Read(&s, environ); err != nil {
		return err
	}
	if s.API != "" && s.URL == "" {
		return Errorf("LONGSHORE_URL is set: %s, so unset it and set NATS_URL", reason)
	}
	return nil
}

// Events says how a process publishes the events of runs.
type Events struct {
	Bundles bool `env:"LONGSHORE_EVENT_BUNDLES" envDefault:"false" help:"publish events of a run that come together as one message, which costs less; readers of EVENTS must know of it"`
}
