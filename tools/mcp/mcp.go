// Package mcp offers the tools, resources and prompts of MCP servers (modelcontextprotocol.io) that an operator chose, over
// stdio and streamable HTTP. Call [ParseConfig], [ReadLock] and [Open]; [Inspect] looks at one server without offering anything.
//
// What a server says is data. A model sees the definitions in the operator's lock file and no others: a tool whose
// definition has changed since is disabled. Hints of servers about effects are never trusted, and their requests to sample, to ask
// a person or to list roots are refused. A server's process gets a clean environment, but it is not confined otherwise.
//
// Each server has one owner, a goroutine that connects, compares and connects again with growing waits until its context ends.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
)

// firstWait is how long Open waits for servers: long enough for one that is installed. One that comes later is offered then.
const firstWait = 10 * time.Second

// maxOffered is how many tools all servers may have: a worker announces each.
const maxOffered = 512

// Deps are what servers are reached with.
type Deps struct {
	Credentials *credential.Store
	Dir         string // of the operator's file: names of files are relative to it
	Path, Home  string // the only variables that a process inherits: PATH and HOME
	Version     string // of this program, as servers are told it
	Log         *slog.Logger
}

// Family is the tools of all servers. Close ends it.
type Family struct {
	servers []*server
	made    []tools.Tool
	stop    context.CancelFunc
	owners  sync.WaitGroup
}

// Open starts the owners of all servers, and waits a few seconds for servers that are slow to answer. One that is away is no
// error: its tools are not Present until it comes. Errors are *messages.FieldError about the configuration. The Family works
// until Close, whatever becomes of ctx.
func Open(ctx context.Context, cfg Config, lock *Lock, d Deps) (*Family, error) {
	f := &Family{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Servers)) {
		s, err := newServer(name, cfg.Servers[name], d)
		if err == nil {
			err = s.pin(lock)
		}
		if err != nil {
			return nil, strict.Under("servers."+strict.Shown(name), err)
		}
		made, err := s.tools()
		if err != nil {
			return nil, strict.Under("servers."+strict.Shown(name), err)
		}
		f.servers = append(f.servers, s)
		if f.made = append(f.made, made...); len(f.made) > maxOffered {
			return nil, wrong("servers", "have more than %d tools together: list those that are used in tools of each", maxOffered)
		}
	}
	var owned context.Context
	owned, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, s := range f.servers {
		f.owners.Go(func() { s.own(owned) })
	}
	limited, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	for _, s := range f.servers {
		_, _ = s.await(limited, false) // one that is away is offered when it comes
	}
	return f, nil
}

// Tools are those of all servers, whether they are there or not.
func (f *Family) Tools() []tools.Tool { return slices.Clone(f.made) }

// Degraded names the servers that are away and the tools that are disabled; nil: all is well. It returns at once.
func (f *Family) Degraded() error {
	var errs []error
	for _, s := range f.servers {
		errs = append(errs, s.degraded())
	}
	return errors.Join(errs...)
}

// Close ends all sessions and processes and waits for them. No call may be under way.
func (f *Family) Close() error {
	f.stop()
	f.owners.Wait()
	return nil
}

// wrong is an error about a field of the configuration.
func wrong(field, format string, args ...any) error {
	return &messages.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// toldName is what a tool of a server is called here: letters, digits, _ and -, which every provider takes.
func toldName(server, tool string) (string, error) {
	name := server + "_" + strings.NewReplacer(".", "_", "/", "_").Replace(tool)
	if tool == "" || !strict.ValidToken(name) {
		return "", fmt.Errorf("the name %q is empty, longer than 64 characters with that of the server, or holds others than A-Z a-z 0-9 _ - . /", strict.Shown(tool))
	}
	return name, nil
}
