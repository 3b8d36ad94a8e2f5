// Package remote is the family of tools that other programs serve over NATS, in any language. A program is a NATS micro service with
// the name [Service]; each of its endpoints is a tool, whose metadata holds the definition under [MetadataKey]. The contract is in
// docs/tools/remote.md.
//
// The operator takes tools by their definitions, a file for each: a model sees what is in them and nothing that a program says.
// A tool is offered while programs serve it with that very definition. One that is served with another is disabled, until the operator
// takes the new one. No program can take the name of another tool.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// Deps are what the family is made of.
type Deps struct {
	// NATS is the connection of the worker, which keeps no messages while it is cut off (nats.ReconnectBufSize(-1)): a call must not be
	// sent some time later. The family does not close it.
	NATS *nats.Conn
	Dir  string       // files of definitions are relative to it
	Log  *slog.Logger // gets names of tools; nil discards it
	// Every is how often programs are looked for, and three times as long as their answers are waited for. Default 3 s.
	Every time.Duration
}

// Family holds the tools, and looks for the programs that serve them.
type Family struct {
	tools []*tool
	watch *watch

	stop context.CancelFunc
	done sync.WaitGroup
}

// Open reads the definitions and looks for programs once before it returns. An error about the configuration is a *messages.FieldError.
// The caller closes the Family; the end of ctx ends the looking, too.
func Open(ctx context.Context, cfg Config, d Deps) (*Family, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.NATS.Opts.ReconnectBufSize >= 0 {
		return nil, errors.New("the connection to NATS keeps messages to send them later: connect with nats.ReconnectBufSize(-1)")
	}
	f := &Family{}
	taken := map[string]*tool{}
	for i, file := range cfg.Tools {
		if !filepath.IsAbs(file) {
			file = filepath.Join(d.Dir, file)
		}
		wrong := func(reason string) error {
			return &messages.FieldError{Field: fmt.Sprintf("tools[%d]", i), Reason: reason}
		}
		def, err := readDefinition(file)
		if err != nil {
			return nil, wrong(err.Error())
		}
		if taken[def.Name] != nil {
			return nil, wrong("defines " + def.Name + ", which another file defines too")
		}
		t := &tool{nc: d.NATS, def: def, bytes: cfg.Bytes, timeout: min(time.Duration(cfg.Timeout), time.Duration(def.Timeout))}
		if _, err := tools.NewSet(t); err != nil {
			return nil, wrong(err.Error())
		}
		taken[def.Name] = t
		f.tools = append(f.tools, t)
	}
	f.watch = &watch{nc: d.NATS, every: cmp.Or(d.Every, lookEvery), log: d.Log, tools: taken, strangers: map[string]bool{}}
	f.watch.look(ctx)
	ctx, f.stop = context.WithCancel(ctx)
	f.done.Go(func() { f.watch.run(ctx) })
	return f, nil
}

// Tools are all that the operator takes, whether they are served or not.
func (f *Family) Tools() []tools.Tool {
	all := make([]tools.Tool, len(f.tools))
	for i, t := range f.tools {
		all[i] = t
	}
	return all
}

// Degraded names the tools that are disabled; nil: none is. It returns at once.
func (f *Family) Degraded() error {
	var names []string
	for _, t := range f.tools {
		if s := standing(t.standing.Load()); s == changed || s == ambiguous {
			names = append(names, t.def.Name)
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("tools of other programs are disabled: %s", strings.Join(names, ", "))
}

// Close ends the looking. No call may be under way.
func (f *Family) Close() error {
	f.stop()
	f.done.Wait()
	return nil
}
