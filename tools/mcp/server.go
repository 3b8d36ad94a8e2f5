package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Times of an owner.
const (
	connectTimeout = 30 * time.Second // to start, shake hands and list: installers take a while
	recheckEvery   = time.Minute      // definitions are compared again, which also finds out that a session is dead
	recheckLeast   = time.Second      // between two comparisons that the server asks for
	leastAgain     = time.Second      // before a server is tried again; twice as long each time
	mostAgain      = time.Minute      // so a server that never comes costs one start a minute
	steady         = time.Minute      // a session that lasted so long makes the next wait short again
)

// maxCalls is how many calls of one server may be under way.
const maxCalls = 64

// errAway means that there is no session.
var errAway = errors.New("the server is away")

// server is one server with its owner's state.
type server struct {
	name  string
	cfg   Server
	deps  Deps
	log   *slog.Logger
	auth  *authorizer // nil: a process
	pins  map[string]Pin
	calls chan struct{} // one for each call under way

	mu      sync.Mutex
	now     *session      // nil: away
	why     error         // it is away; nil before the first attempt
	changed chan struct{} // closed and replaced when one of them changes
}

func newServer(name string, cfg Server, d Deps) (*server, error) {
	s := &server{
		name: name, cfg: cfg, deps: d, log: d.Log.With("server", name), calls: make(chan struct{}, maxCalls), changed: make(chan struct{}),
	}
	if cfg.URL != "" {
		var err error
		if s.auth, err = newAuthorizer(&s.cfg, d.Credentials); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// pin takes the definitions that are offered from the lock file.
func (s *server) pin(lock *Lock) error {
	all := lock.Servers[s.name]
	s.pins = maps.Clone(all)
	if s.cfg.Tools != nil {
		s.pins = map[string]Pin{}
		for i, tool := range s.cfg.Tools {
			p, ok := all[tool]
			if !ok {
				return wrong(fmt.Sprintf("tools[%d]", i), "%q is not in the lock file: `longshore tools pin %s` puts it there if the server has it", strict.Shown(tool), s.name)
			}
			s.pins[tool] = p
		}
	}
	if len(s.pins) == 0 && !s.cfg.Resources && !s.cfg.Prompts {
		return wrong("tools", "none is in the lock file: run `longshore tools pin %s` and look at what it writes", s.name)
	}
	for _, tool := range slices.Sorted(maps.Keys(s.cfg.Effects)) {
		if _, ok := s.pins[tool]; !ok {
			return wrong("effects."+strict.Shown(tool), "is none of the tools that are offered")
		}
	}
	return nil
}

func (s *server) effect(tool string) messages.Effect {
	if e := s.cfg.Effects[tool]; e != "" {
		return e
	}
	return messages.EffectOnce
}

// own keeps a session until ctx ends.
func (s *server) own(ctx context.Context) {
	runtime.LockOSThread() // a process is told to die when the thread that started it does
	defer runtime.UnlockOSThread()
	for again := leastAgain; ; {
		lasted, err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if lasted > steady {
			again = leastAgain
		}
		wait := again/2 + rand.N(again/2+1)
		s.set(nil, err)
		s.log.WarnContext(ctx, "an MCP server is away; its tools are not offered until it comes", "err", s.clean(err.Error()), "again_in", wait.String())
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		again = min(2*again, mostAgain)
	}
}

// serve keeps one session for as long as it lasts.
func (s *server) serve(ctx context.Context) (lasted time.Duration, err error) {
	n, err := s.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer n.close()
	began := time.Now()
	s.check(ctx, n)
	s.set(n, nil)
	s.log.InfoContext(ctx, "connected to an MCP server", "tools", len(s.pins)-len(n.problems()))
	every := time.NewTicker(recheckEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return time.Since(began), ctx.Err()
		case <-n.ended:
			return time.Since(began), n.reason()
		case <-every.C:
		case <-n.news:
			select {
			case <-time.After(recheckLeast):
			case <-ctx.Done():
				continue
			}
		}
		if err := n.list(ctx); err != nil {
			if ctx.Err() != nil {
				continue
			}
			return time.Since(began), fmt.Errorf("list tools again: %w", err)
		}
		s.check(ctx, n)
	}
}

// check compares what the server defines with what is pinned, and says what is new.
func (s *server) check(ctx context.Context, n *session) {
	before, now := n.problems(), map[string]string{}
	seen, refused := n.definitions()
	for _, tool := range slices.Sorted(maps.Keys(s.pins)) {
		d, ok := seen[tool]
		switch {
		case refused[tool] != "":
			now[tool] = refused[tool]
		case !ok:
			now[tool] = "the server no longer has it"
		case d != s.pins[tool].SHA256:
			now[tool] = "its definition is not the one in the lock file"
		}
		if now[tool] != "" && now[tool] != before[tool] {
			s.log.ErrorContext(ctx, "a tool of an MCP server is disabled: compare with `longshore tools list`, then `longshore tools pin`", "tool", tool, "reason", now[tool])
		}
	}
	n.setProblems(now)
	s.wake()
}

// set notifies waiting calls of the state of the session.
func (s *server) set(n *session, why error) {
	s.mu.Lock()
	s.now, s.why = n, why
	s.mu.Unlock()
	s.wake()
}

func (s *server) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// present is the session if there is one.
func (s *server) present() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil && s.now.over() {
		return nil
	}
	return s.now
}

// await waits for a session until ctx ends. Unless it is patient it gives up when the server was tried and is away.
func (s *server) await(ctx context.Context, patient bool) (*session, error) {
	for {
		s.mu.Lock()
		n, why, changed := s.now, s.why, s.changed
		s.mu.Unlock()
		switch {
		case n != nil && !n.over():
			return n, nil
		case n == nil && why != nil && !patient:
			return nil, errAway
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errAway
		}
	}
}

// offers reports whether a tool can be called now.
func (s *server) offers(tool string) bool {
	n := s.present()
	return n != nil && n.problems()[tool] == ""
}

func (s *server) degraded() error {
	n := s.present()
	if n == nil {
		return fmt.Errorf("the MCP server %s is away", s.name)
	}
	if bad := slices.Sorted(maps.Keys(n.problems())); len(bad) > 0 {
		return fmt.Errorf("tools of the MCP server %s are disabled: %s", s.name, line(strings.Join(bad, ", "), 512))
	}
	return nil
}

// clean is a text for a log or a model: without secrets, on one line, short.
func (s *server) clean(text string) string { return line(s.redact(text), 512) }

// redact takes out the secrets that this server knows.
func (s *server) redact(text string) string {
	b := []byte(text)
	for _, name := range s.cfg.Secrets {
		b = s.deps.Credentials.Redact(name, b)
	}
	if s.auth != nil {
		b = s.auth.redact(b)
	}
	return string(b)
}
