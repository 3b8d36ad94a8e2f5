package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
)

const (
	farAway        = 50 * time.Millisecond // a step makes several round trips
	usualPayload   = 2_000_000             // what docs/operations.md advises
	leastPayload   = 128 << 10             // below it an entry of a log does not fit
	lookForDenials = 20 * time.Millisecond
	greetingWait   = 100 * time.Millisecond // between attempts: a server that listens answers the first
)

// errDenied means that this NATS user may not ask what a check asks.
var errDenied = errors.New("this NATS user has no permission for it")

// asDispatcher is what to do then.
const asDispatcher = "run it with the NATS user of a dispatcher, or see that user's permissions in docs/nats-security.md"

// store is a connection to the message store, and what was learned of it.
type store struct {
	*doctor

	nc      *nats.Conn
	inspect *bus.Inspector
	streams map[string]*bus.StreamState // that could be looked at
	queued  int                         // tasks that no worker was given
	found   []Finding
}

// messageStore looks at NATS, and what of the fleet is seen through it.
func (d *doctor) messageStore(ctx context.Context) []Finding {
	if d.env.nats != nil {
		return []Finding{fail("nats", "set NATS_URL to its address; that of `longshore dev` is nats://127.0.0.1:4222", "%v", d.env.nats)}
	}
	s := &store{doctor: d, streams: map[string]*bus.StreamState{}}
	if s.found = d.servers(ctx); s.found != nil && s.found[0].Status == Fail {
		return s.found
	}
	if !s.connect(ctx) {
		return s.found
	}
	defer s.nc.Close()
	for _, check := range []func(context.Context) []Finding{
		s.server, s.account, s.setUp, s.copies, s.leaders, s.syncing, s.storage, s.clock, s.room, s.lanes, s.deadLetters, s.workers, s.unsigned, s.tenantKeys,
	} {
		if ctx.Err() != nil {
			break
		}
		s.found = append(s.found, check(ctx)...)
	}
	return s.found
}

// servers dials each address of NATS_URL. The first finding has failed when none listens.
func (d *doctor) servers(ctx context.Context) []Finding {
	addresses := strings.Split(d.env.worker.URL, ",")
	var found []Finding
	for _, a := range addresses {
		u, err := url.Parse(strings.TrimSpace(a))
		if err != nil {
			continue // the settings were checked
		}
		host := hostPort(u)
		if err := d.dial(ctx, host); err != nil {
			found = append(found, warn("nats server", "start it, or remove it from NATS_URL", "%s: %s", host, network(err)))
		}
	}
	if len(found) == len(addresses) {
		found[0].Status, found[0].Check, found[0].Do = Fail, "nats", "start nats-server (2.14 or newer, with -js), or set NATS_URL to where it is"
		return found[:1]
	}
	return found
}

func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := map[string]string{"ws": "80", "wss": "443"}[u.Scheme]
	if port == "" {
		port = "4222"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func (d *doctor) dial(ctx context.Context, address string) error {
	ctx, cancel := d.within(ctx)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// network is an error of a connection in a few words, without addresses, which may have secrets.
func network(err error) string {
	var (
		name   *net.DNSError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &name):
		return "its name cannot be found"
	case errors.As(err, &cert):
		return "its certificate is not trusted: " + cert.Err.Error()
	case errors.As(err, &record):
		return "it does not speak TLS"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "no answer in time"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "nothing listens there: " + op.Err.Error()
	}
	return err.Error()
}

// connect opens the connection, and says why it cannot.
func (s *store) connect(ctx context.Context) bool {
	ctx, cancel := s.within(ctx)
	defer cancel()
	cfg := s.env.worker.Conn(fleet.Client, nil)
	cfg.Wait = greetingWait
	var err error
	if s.nc, err = bus.Connect(ctx, cfg); err != nil {
		s.found = append(s.found, refusal(&s.env.worker.NATS, err))
		return false
	}
	want := s.wanted()
	_ = s.ask(ctx, func(ctx context.Context) (err error) { // without an answer the streams are missed later
		want.Division, err = bus.FindDivision(ctx, s.nc)
		return err
	})
	s.inspect, err = bus.NewInspector(s.nc, want)
	if err != nil {
		s.nc.Close()
		s.found = append(s.found, fail("nats", "try again", "%v", err))
		return false
	}
	return true
}

// refusal explains why NATS refused the connection.
func refusal(n *settings.NATS, err error) Finding {
	given := "a user and password in NATS_URL, NATS_CREDS or NATS_NKEY"
	switch {
	case n.Credentials != "":
		given = "NATS_CREDS"
	case n.NKey != "":
		given = "NATS_NKEY"
	}
	cert, record := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fail("nats", "check "+given+" against the users of the server", "it refuses these credentials: %v", err)
	case record && cert != nil:
		return fail("nats", "set NATS_CA to the file with the certificate of its authority", "its certificate is not trusted: %v", cert.Err)
	case noTLS, errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrSecureConnRequired):
		return fail("nats", "let the scheme of NATS_URL be tls if the server has TLS, and nats if not", "%v", err)
	default:
		return fail("nats", "check that NATS_URL is the address of a NATS server: another program listens there", "%v", err)
	}
}

// wanted is how this environment would set streams up.
func (s *store) wanted() bus.Streams {
	if s.env.role != roleDispatcher {
		return bus.Streams{}
	}
	return s.env.dispatcher.Streams()
}

// ask does one check in its time. ErrDenied: the server refused something meanwhile.
func (s *store) ask(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	ctx, deny := context.WithCancelCause(ctx)
	defer deny(nil)
	before := s.nc.LastError()
	denied := func() bool {
		now := s.nc.LastError()
		return now != before && errors.Is(now, nats.ErrPermissionViolation) //nolint:errorlint // whether it is the same one
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(lookForDenials)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if denied() {
					deny(errDenied)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errDenied) {
		err = errDenied
	}
	deny(nil)
	<-watched
	return err
}

// server looks at the connection.
func (s *store) server(ctx context.Context) []Finding {
	n := s.nc
	began := time.Now()
	err := s.ask(ctx, n.FlushWithContext)
	took := time.Since(began)
	if err != nil {
		return []Finding{fail("nats", "look at the server's log", "it does not answer: %v", err)}
	}
	what := fmt.Sprintf("%s %s, %s away", n.ConnectedUrlRedacted(), n.ConnectedServerVersion(), short(took))
	out := []Finding{ok("nats", "%s", what)}
	if took > farAway {
		out[0] = warn("nats", "run workers and dispatchers near the server: a step makes several round trips", "%s", what)
	}
	const do = "set max_payload: 2MB in nats-server.conf: a task may have 1 MiB of text"
	switch size := n.MaxPayload(); {
	case size < leastPayload:
		out = append(out, fail("max payload", do, "%d bytes: entries of logs do not fit", size))
	case size < usualPayload:
		out = append(out, warn("max payload", do, "%d bytes: large tasks are refused", size))
	default:
		out = append(out, ok("max payload", "%s", bytesOf(size)))
	}
	return out
}

// short is a duration for people.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(time.Second / 10).String()
	}
}

func bytesOf(n int64) string {
	switch f := float64(n); {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", f/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	}
}
