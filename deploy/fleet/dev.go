package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/worker/model/scripted"
	"github.com/longshore-run/longshore/worker/policy"
)

// DevConfig chooses how the fleet in one process is.
type DevConfig struct {
	HTTPAddr  string // default 127.0.0.1:0
	NATSAddr  string // default 127.0.0.1:0
	RedisAddr string // default 127.0.0.1:0
	Dir       string // of queue, logs and files; empty: a temporary one
	Agents    string // folder with definitions
	Name      string // of the worker. Default: host name and process id
	Workspace string // a folder that every run works in, in place; empty: one for each run
	Folders   string // of the folders of runs; empty: in Dir
	NoWorker  bool
	Abrupt    bool          // do not wait for steps in hand when it stops
	Sweep     time.Duration // default 10 min

	// Dev is the environment. RunIndex and LongTerm auto, or their zero values, are files in Dir; without Access everyone on this machine may do
	// everything.
	settings.Dev

	Version string
	Log     *slog.Logger
	Parts   Parts
}

// Dev is a fleet in this process.
type Dev struct {
	API, NATS, Redis string // addresses
	Scheme           string // of API: http or https
	Scripted         bool   // no provider is configured: the built-in script answers

	agentFiles [sha256.Size]byte // as they were read

	servers *embedded.Servers
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // once done is closed

	mu    sync.Mutex
	conns []*nats.Conn
	held  func() int // counts the runs that the worker has in hand; nil: there is no worker
}

// StartDev starts NATS and a Redis-compatible store inside the process, a dispatcher and, unless told otherwise, a
// worker. It returns once they accept work. The fleet ends with Stop, or when one of its parts fails.
func StartDev(ctx context.Context, cfg DevConfig) (_ *Dev, err error) {
	files := agentSum(cfg.Agents) // before they are read: a later change must show
	defs, err := loadAgents(cfg.Agents)
	if err != nil {
		return nil, err
	}
	if err := cfg.checkAddresses(); err != nil {
		return nil, err
	}
	d := &Dev{done: make(chan struct{}), Scheme: "http", agentFiles: files, Scripted: !cfg.Configured() && cfg.Parts.Model == nil}
	if cfg.TLSCert != "" {
		d.Scheme = "https"
	}
	var storeKey string
	if cfg.Encryption, storeKey, err = devKeys(&cfg); err != nil {
		return nil, err
	}
	d.servers, err = embedded.Start(ctx, embedded.Config{
		Dir: cfg.Dir, NATSAddr: cfg.NATSAddr, RedisAddr: cfg.RedisAddr, Key: storeKey, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	d.NATS, d.Redis = d.servers.NATSURL, d.servers.RedisURL
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	parts, err := d.parts(cfg, defs)
	if err != nil {
		cancel()
		d.close()
		return nil, err
	}
	ready := make(chan struct{})
	go d.run(run, parts, ready)
	select {
	case <-ready:
		return d, nil
	case <-d.done:
		return nil, d.err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), d.Stop())
	}
}

// part is one process of the fleet; it calls up once it accepts work.
type part func(ctx context.Context, up func(addr string)) error

// parts are started in order, each once the one before is up, and stopped in the opposite order.
func (d *Dev) parts(cfg DevConfig, defs []messages.Definition) ([]part, error) {
	nc, err := d.connect("longshore dispatcher", cfg.Log)
	if err != nil {
		return nil, err
	}
	ds := cfg.Dispatcher()
	ds.HTTPAddr, ds.Sweep = or(cfg.HTTPAddr, "127.0.0.1:0"), cfg.Sweep
	if ds.Index = or(ds.Index, settings.IndexAuto); ds.Index == settings.IndexAuto {
		ds.Index = filepath.Join(d.servers.Dir(), "index.db")
	}
	if cfg.Memory = or(cfg.Memory, settings.MemoryAuto); cfg.Memory == settings.MemoryAuto {
		cfg.Memory = settings.MemorySQLite + filepath.Join(d.servers.Dir(), "memory.db")
	}
	ds.RedisURL, ds.Memory = d.servers.RedisURL, cfg.Memory
	// The parts share one process: what either was told must not leave through the other, in what a model says above all.
	redact := policy.NewRedactor(settings.Secrets(cfg.Dev)...)
	parts := []part{func(ctx context.Context, up func(string)) error {
		return runDispatcher(ctx, nc, ds, redact, defs, cfg.Version, cfg.Log, func(addr string) { d.API = addr; up(addr) })
	}}
	if cfg.NoWorker {
		return parts, nil
	}
	wnc, err := d.connect("longshore worker", cfg.Log)
	if err != nil {
		return nil, err
	}
	ws := cfg.Worker()
	ws.RedisURL, ws.HTTPAddr, ws.Workspaces = d.servers.RedisURL, "127.0.0.1:0", cfg.Folders
	ws.Name = or(cfg.Name, WorkerName())
	if cfg.Abrupt {
		ws.DrainTimeout = time.Millisecond
	}
	if ws.MemoryTTL == 0 {
		ws.MemoryTTL = 24 * time.Hour
	}
	files := cfg.Parts
	files.redact = redact
	switch {
	case cfg.Workspace != "":
		files.Files = sandbox.InPlace(cfg.Workspace, sandbox.Limits{})
	case ws.Workspaces == "":
		ws.Workspaces = filepath.Join(d.servers.Dir(), "workspaces")
	}
	files.alone = cfg.NATSAddr == embedded.NoListen
	files.Begun = func(held func() int) {
		if cfg.Parts.Begun != nil {
			cfg.Parts.Begun(held)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.held = held
	}
	if files.Model == nil {
		if files.guard, err = newGuard(ws, limitsOf(ws.Models), redact, cfg.Log); err != nil {
			return nil, err
		}
		if files.Model, err = models(ws.Models, ws.ModelTimeout, scripted.Demo(), files); err != nil {
			return nil, errors.Join(err, files.guard.close())
		}
	}
	return append(parts, func(ctx context.Context, up func(string)) error {
		defer func() { _ = files.guard.close() }()
		if err := runWorker(ctx, wnc, ws, cfg.Version, cfg.Log, files, up); err != nil {
			return err
		}
		<-ctx.Done() // it was drained by a request: the fleet keeps running without it
		return nil
	}), nil
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func (d *Dev) connect(name string, log *slog.Logger) (*nats.Conn, error) {
	opts, err := bus.Options(bus.ConnConfig{Name: name, Log: log})
	if err != nil {
		return nil, err
	}
	nc, err := d.servers.Conn(opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to the embedded NATS: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, nc)
	return nc, nil
}

// run starts the parts and waits for the end.
func (d *Dev) run(ctx context.Context, parts []part, ready chan<- struct{}) {
	defer close(d.done)
	defer d.close()
	type running struct {
		stop context.CancelFunc
		done chan error
	}
	var all []running
	failed := make(chan error, len(parts))
	start := func(p part) bool {
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		r := running{stop, make(chan error, 1)}
		all = append(all, r)
		up := make(chan struct{})
		go func() {
			err := p(own, func(string) { close(up) })
			r.done <- err
			failed <- err
		}()
		select {
		case <-up:
			return true
		case d.err = <-failed:
			if d.err == nil {
				d.err = errors.New("a part of the fleet ended at once")
			}
			return false
		case <-ctx.Done():
			return false
		}
	}
	ok := true
	for _, p := range parts {
		if ok = start(p); !ok {
			break
		}
	}
	if ok {
		close(ready)
		select {
		case <-ctx.Done():
		case d.err = <-failed:
		}
	}
	for _, r := range slices.Backward(all) { // the worker drains while its dispatcher still answers
		r.stop()
		if err := <-r.done; err != nil && d.err == nil {
			d.err = err
		}
	}
}

func (d *Dev) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, nc := range d.conns {
		nc.Close()
	}
	if err := d.servers.Stop(); err != nil && d.err == nil {
		d.err = err
	}
}

// Client returns a client of this fleet; it ends with the fleet.
func (d *Dev) Client(ctx context.Context) (*dispatcher.Client, error) {
	nc, err := d.connect(Client, nil)
	if err != nil {
		return nil, err
	}
	return dispatcher.New(ctx, nc)
}

// Keep waits until ctx or the fleet ends, and meanwhile keeps the agents as their files say.
func (d *Dev) Keep(ctx context.Context, cfg *DevConfig) error {
	if cfg.Agents != "" {
		return d.keepAgents(ctx, cfg.Agents, cfg.Log)
	}
	select {
	case <-ctx.Done():
	case <-d.done:
	}
	return nil
}

// Held returns how many runs the worker has in hand: those whose current step Stop waits for. It is 0 without a worker.
func (d *Dev) Held() int {
	d.mu.Lock()
	held := d.held
	d.mu.Unlock()
	if held == nil {
		return 0
	}
	return held()
}

// Done is closed when the fleet has ended; Stop then tells why.
func (d *Dev) Done() <-chan struct{} { return d.done }

// Stop drains and ends everything, and returns why it ended, if it did so by itself.
func (d *Dev) Stop() error {
	d.cancel()
	<-d.done
	return d.err
}
