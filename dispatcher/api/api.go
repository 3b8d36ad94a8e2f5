// Package api is the HTTP face of the dispatcher: tasks, their events as server-sent events, agents, and /run-lite.
//
// Every request is answered with the JSON of the NATS service, and every error with an RFC 9457 problem of the same
// codes (messages.Problem). The OpenAPI 3.1 document at /openapi.json is generated from the same table that serves
// the requests (operations), and from the Go types.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Config is fixed for the life of an API.
type Config struct {
	Client      *dispatcher.Client
	Hub         *events.Hub   // serves the watchers
	Runs        runlog.Log    // where the steps of /run-lite are read
	Version     string        // of the program
	LiteTimeout time.Duration // how long /run-lite waits for its run; default 2 min
	KeepAlive   time.Duration // between comments in a stream of events; default 15 s
	BodyTimeout time.Duration // until a body has been read; default 30 s
	Hosts       []string      // names that requests may be for without Access, besides loopback; "*": any
	Log         *slog.Logger  // default: discard
	Access      *Access       // nil: no authentication
	Operations  control.Table // served in addition to the routes by hand; default control.Operations()
}

const (
	defaultKeepAlive   = 15 * time.Second
	defaultLiteTimeout = 2 * time.Minute
	// A task: its input and context, twice over for JSON's escapes.
	maxBody = 4 << 20
	// An answer over a slow line, and a body unless the configuration says otherwise.
	bodyTimeout = 30 * time.Second
	// A request that does not wait for a run.
	requestTimeout = 15 * time.Second
	// How long a submit may wait for the result.
	maxWait = 60 * time.Second
)

// API is an http.Handler.
type API struct {
	cfg     Config
	mux     *http.ServeMux
	lite    turns // of /run-lite
	uploads uploading
	deltas  *deltas
	origins http.CrossOriginProtection

	drain chan struct{} // closed when streams and waits are to end
	once  sync.Once
}

// New returns the API.
func New(cfg Config) *API {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Operations == nil {
		cfg.Operations = control.Operations()
	}
	if cfg.KeepAlive == 0 {
		cfg.KeepAlive = defaultKeepAlive
	}
	if cfg.BodyTimeout == 0 {
		cfg.BodyTimeout = bodyTimeout
	}
	if cfg.LiteTimeout == 0 {
		cfg.LiteTimeout = defaultLiteTimeout
	}
	a := &API{cfg: cfg, mux: http.NewServeMux(), drain: make(chan struct{}), deltas: newDeltas(cfg.Client)}
	paths := map[string][]string{}
	for _, op := range operations(cfg.Operations) {
		a.mux.Handle(op.method+" "+op.path, a.serve(op))
		paths[op.path] = append(paths[op.path], op.method)
	}
	for path, methods := range paths {
		a.mux.HandleFunc(path, wrongMethod(methods))
	}
	a.serveContract()
	a.serveSessions()
	a.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problemf(http.StatusNotFound, "not_found", "there is no such path; GET /openapi.json lists them"))
	})
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.cfg.Access == nil {
		if p := a.stranger(r); p != nil {
			writeProblem(w, p)
			return
		}
	}
	a.mux.ServeHTTP(w, r)
}

// Drain ends streams and waits, so that the server can stop: clients come back to another dispatcher.
func (a *API) Drain() { a.once.Do(func() { close(a.drain) }) }

// errDraining ends what waits when the process stops.
var errDraining = errors.New("the dispatcher stops: try again")

// untilDrain is a context that also ends when the process drains.
func (a *API) untilDrain(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := make(chan struct{})
	go func() {
		select {
		case <-a.drain:
			cancel(errDraining)
		case <-ctx.Done():
		case <-stop:
		}
	}()
	return ctx, sync.OnceFunc(func() { close(stop); cancel(nil) })
}
