package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Defaults of a connection.
const (
	defaultConnectWait = 10 * time.Second       // a fleet that starts together waits for its server
	pingInterval       = 20 * time.Second       // two lost pings, and the connection counts as dead
	dialTimeout        = 2 * time.Second        // of one attempt
	reconnectWait      = 250 * time.Millisecond // a server that restarts is back within a second
	reconnectJitter    = 250 * time.Millisecond // so that a fleet does not come back in one instant
)

// ConnConfig says how to reach NATS.
type ConnConfig struct {
	URL         string        // one or more, separated by commas. Default nats://127.0.0.1:4222
	Name        string        // shown in the server's list of connections
	InboxPrefix string        // what this client may subscribe for replies. Default _INBOX
	CredsFile   string        // a user's JWT and key
	NKeyFile    string        // a user's nkey seed; not both
	CAFile      string        // trusted besides the system's
	Wait        time.Duration // how long Connect tries. Default 10 s
	Log         *slog.Logger  // default: discarded
}

// Options are what every client of Longshore needs, also if another package opens the connection: nothing is buffered while
// disconnected, for a publish its caller gave up on must not be sent later; reconnecting never ends; what the server
// says on the side, such as a missing permission, is logged.
func Options(cfg ConnConfig) ([]nats.Option, error) {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	opts := []nats.Option{
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.IgnoreAuthErrorAbort(), // credentials are rotated in place
		nats.PermissionErrOnSubscribe(true),
		nats.Timeout(dialTimeout),
		nats.PingInterval(pingInterval),
		nats.Name(cfg.Name),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Error("nats error", "err", err, "subject", subject)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil: closed by us
				log.Warn("nats disconnected", "err", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("nats reconnected") }),
	}
	if cfg.InboxPrefix != "" && !strings.HasPrefix(cfg.InboxPrefix, "_") {
		return nil, errors.New("the inbox prefix must begin with an underscore, such as _INBOX_worker: requests with any other are refused")
	}
	if cfg.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(cfg.InboxPrefix))
	}
	if cfg.CAFile != "" {
		opts = append(opts, nats.RootCAs(cfg.CAFile))
	}
	switch {
	case cfg.CredsFile != "" && cfg.NKeyFile != "":
		return nil, errors.New("give either a credentials file or an nkey file, not both")
	case cfg.CredsFile != "":
		opts = append(opts, nats.UserCredentials(cfg.CredsFile))
	case cfg.NKeyFile != "":
		nkey, err := nats.NkeyOptionFromSeed(cfg.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read nkey file: %w", err)
		}
		opts = append(opts, nkey)
	}
	return opts, nil
}

// Connect opens a connection. It tries again for cfg.Wait while no server answers; a refusal of the credentials ends it
// at once. The caller closes the connection. No error shows credentials of the URL.
func Connect(ctx context.Context, cfg ConnConfig) (*nats.Conn, error) {
	servers, shown, err := parseServers(cmp.Or(cfg.URL, nats.DefaultURL))
	if err != nil {
		return nil, err
	}
	opts, err := Options(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", shown, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(cfg.Wait, defaultConnectWait))
	defer cancel()
	for n := 0; ; n++ {
		nc, err := nats.Connect(servers, opts...)
		switch {
		case err == nil:
			return nc, nil
		case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
			return nil, fmt.Errorf("connect to NATS at %s: %w (are the credentials right?)", shown, err)
		}
		if Pause(ctx, Backoff(n)) != nil {
			return nil, fmt.Errorf("connect to NATS at %s: %w (is it running?)", shown, err)
		}
	}
}

// parseServers checks a list of URLs and returns it with a form that is safe to show.
func parseServers(list string) (servers, shown string, err error) {
	var safe []string
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			// Not wrapped: the parser's error repeats the whole URL, password and all.
			return "", "", errors.New("the NATS URL is not valid: want nats://host:port, more than one separated by commas")
		}
		u.User = nil
		safe = append(safe, u.Scheme+"://"+u.Host)
	}
	return list, strings.Join(safe, ","), nil
}
