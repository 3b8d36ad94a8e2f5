// Package erasure finds and erases all that is kept of a tenant, of a conversation or of a person.
package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Memory is long-term memory as an erasure sees it. Its errors are those of the requests about memory.
type Memory interface {
	Collections(ctx context.Context, tenant string) (memory.Collections, error)
	List(ctx context.Context, r *memory.ListRequest) (memory.Page, error)
	Delete(ctx context.Context, tenant, collection string, ids []string) (int, error)
	// Erase removes the items of all collections that pass a filter; an empty one passes all. It returns how many there were.
	Erase(ctx context.Context, tenant string, f memory.Filter) (int, error)
}

// Cache is what workers keep in Redis.
type Cache interface {
	// Erase removes what is kept for a tenant, and returns how many values there were.
	Erase(ctx context.Context, tenant string, what Cached) (int64, error)
}

// Cached says what is removed from Redis. Cached replies go with anything: nothing tells whose they are.
type Cached struct {
	Runs          []string // their states, and the values of their tools kv
	Conversations []string // of sessions, which are made again from the logs
	Sessions      []string // the values of their tools kv
	All           bool     // of the tenant
}

// Keys are the keys of tenants.
type Keys interface {
	// Destroy makes what the key of a tenant has encrypted unreadable, for good. It may be repeated.
	Destroy(ctx context.Context, tenant, by string) error
}

// Config is what Erasure works with.
type Config struct {
	Retention  *retention.Retention
	Controller *runlog.Controller
	Runs       *runs.Runs
	Letters    *deadletters.Store
	Sessions   *sessions.Store
	Events     *events.Store
	Memory     Memory // nil: there is none here
	Reach
}

// Reach is what the dispatcher reaches besides NATS and long-term memory.
type Reach struct {
	Cache Cache // nil: there is none here
	Keys  Keys  // nil: nothing is encrypted
}

// Erasure answers the requests about what is kept.
type Erasure struct{ cfg Config }

// New returns an Erasure.
func New(cfg Config) *Erasure { return &Erasure{cfg} }

// Handlers are the requests about what is kept.
func (e *Erasure) Handlers() request.Handlers {
	return request.Handlers{erasure.SubjectFind: request.Read(e.find), erasure.SubjectErase: request.Read(e.erase)}
}

const (
	// How long a request begins to look at further runs: a page ends before the request does.
	pageTime = request.Timeout / 3
	together = 8 // runs that are looked at or erased at once
	// Runs that one request erases: each takes some requests for each of its events.
	erasedAtOnce = 64
)

func (e *Erasure) find(ctx context.Context, r erasure.FindRequest) (any, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	page, talks, err := e.page(ctx, &r.Scope, r.After, erasure.MaxRuns)
	if err != nil {
		return nil, err
	}
	found, err := e.items(ctx, &r.Scope, page)
	if err != nil {
		return nil, err
	}
	for _, ids := range found {
		page.Items += int64(len(ids))
	}
	return page, e.countRest(ctx, &r.Scope, page, talks)
}

// countRest adds what is not of runs: conversations that would be forgotten, and what the last page has.
func (e *Erasure) countRest(ctx context.Context, s *erasure.Scope, page *erasure.Kept, talks []string) error {
	e.left(page)
	if !s.Whole() {
		for _, name := range talks {
			if ok, err := e.over(ctx, s.Tenant, name, page.Runs); err != nil {
				return err
			} else if ok {
				page.Sessions = append(page.Sessions, name)
			}
		}
		return nil
	}
	if page.Next != "" {
		return nil
	}
	page.Key = e.cfg.Keys != nil
	if e.cfg.Memory != nil {
		all, err := e.cfg.Memory.Collections(ctx, s.Tenant)
		if err != nil {
			return err
		}
		page.Items = all.Items
	}
	names, err := e.sessions(ctx, s)
	page.Sessions = names
	return err
}

// left says what is out of reach here.
func (e *Erasure) left(page *erasure.Kept) {
	if page.Next != "" {
		return
	}
	if e.cfg.Memory == nil {
		page.Left = append(page.Left, "long-term memory: this dispatcher has none, set LONGSHORE_MEMORY as for the workers")
	}
	if e.cfg.Cache == nil {
		page.Left = append(page.Left, "values in Redis: this dispatcher has no REDIS_URL; they expire by themselves, unless they are of the tools kv")
	}
}

func (e *Erasure) erase(ctx context.Context, r erasure.EraseRequest) (any, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	page, talks, err := e.page(ctx, &r.Scope, r.After, erasedAtOnce)
	if err != nil {
		return nil, err
	}
	if err := e.eraseItems(ctx, &r.Scope, page); err != nil {
		return nil, err
	}
	told := erasure.Erased{Of: "tenant", Session: r.Session, Runs: page.Runs, By: r.By}
	switch {
	case r.Session != "":
		told.Of = "session"
	case r.Subject != "":
		told.Of = "subject"
	}
	if len(page.Runs) > 0 { // before they are gone: an index of runs removes their rows by this
		if err := e.cfg.Events.AnnounceTo(ctx, r.Tenant, erasure.EventErased, told); err != nil {
			return nil, err
		}
	}
	if err := e.eraseRuns(ctx, r.Tenant, page.Runs); err != nil {
		return nil, err
	}
	if err := e.eraseRest(ctx, &r, page, talks); err != nil {
		return nil, err
	}
	if page.Next == "" {
		told.Runs, told.Items, told.Key = nil, page.Items, page.Key
		return page, e.cfg.Events.AnnounceTo(ctx, r.Tenant, erasure.EventErased, told)
	}
	return page, nil
}

func (e *Erasure) eraseRuns(ctx context.Context, tenant string, runs []string) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for _, id := range runs {
		group.Go(func() error { return e.cfg.Retention.Erase(inner, messages.Ref{Tenant: tenant, Run: id}) })
	}
	if err := group.Wait(); err != nil || len(runs) == 0 {
		return err
	}
	return e.cfg.Retention.Unsay(ctx, tenant, func(data []byte) bool {
		var said struct {
			Data control.Feedback `json:"data"`
		}
		return json.Unmarshal(data, &said) == nil && slices.Contains(runs, said.Data.Run)
	})
}

// eraseRest erases what is not of one run: the conversations that have no run left, what is in Redis, and of a whole tenant the rest, its key last.
func (e *Erasure) eraseRest(ctx context.Context, r *erasure.EraseRequest, page *erasure.Kept, talks []string) error {
	last := page.Next == ""
	e.left(page)
	if last {
		more, err := e.sessions(ctx, &r.Scope)
		if err != nil {
			return err
		}
		talks = append(talks, more...)
	}
	slices.Sort(talks)
	talks = slices.Compact(talks)
	for _, name := range talks {
		forgot, err := e.forget(ctx, r.Tenant, name)
		if err != nil {
			return err
		}
		if forgot {
			page.Sessions = append(page.Sessions, name)
		}
	}
	alone := last && r.Whole() && len(page.Busy) == 0
	if alone {
		known, err := e.cfg.Retention.Known(ctx, r.Tenant)
		if err != nil {
			return err
		}
		if alone = len(known) == 0; !alone {
			page.Left = append(page.Left, "what is not of runs, and the key: the tenant has other runs meanwhile, so make the request again")
		}
	}
	if e.cfg.Cache != nil && (len(page.Runs)+len(talks) > 0 || alone) {
		n, err := e.cfg.Cache.Erase(ctx, r.Tenant, Cached{Runs: page.Runs, Conversations: talks, Sessions: page.Sessions, All: alone})
		if err != nil {
			return fmt.Errorf("erase what is in Redis: %w", err)
		}
		page.Cached = n
	}
	if !alone {
		return nil
	}
	if err := e.cfg.Retention.EraseRest(ctx, r.Tenant); err != nil {
		return err
	}
	if e.cfg.Keys == nil || r.KeepKey {
		return nil
	}
	page.Key = true
	return e.cfg.Keys.Destroy(ctx, r.Tenant, r.By)
}

// sessions are those of a scope: all of the tenant, or the one.
func (e *Erasure) sessions(ctx context.Context, s *erasure.Scope) (names []string, err error) {
	switch {
	case s.Session != "":
		found, _, err := e.cfg.Sessions.Session(ctx, s.Tenant, s.Session)
		if err != nil || found.Empty() {
			return nil, err
		}
		return []string{s.Session}, nil
	case s.Whole():
		list, _, err := e.cfg.Sessions.List(ctx, s.Tenant)
		for i := range list {
			names = append(names, list[i].Name)
		}
		return names, err
	default:
		return nil, nil
	}
}

// over reports whether no run of a conversation is left but those that are about to go.
func (e *Erasure) over(ctx context.Context, tenant, name string, gone []string) (bool, error) {
	s, _, err := e.cfg.Sessions.Session(ctx, tenant, name)
	if err != nil || s.Empty() || len(s.Runs) > 0 {
		return false, err
	}
	for _, run := range s.Ended {
		if slices.Contains(gone, run) {
			continue
		}
		if _, ok, err := e.cfg.Controller.Log.Last(ctx, messages.Ref{Tenant: tenant, Run: run}); err != nil || ok {
			return false, err
		}
	}
	return true, nil
}

// forget forgets a conversation if no run of it is left, and reports whether it did.
func (e *Erasure) forget(ctx context.Context, tenant, name string) (bool, error) {
	if ok, err := e.over(ctx, tenant, name, nil); err != nil || !ok {
		return false, err
	}
	_, err := e.cfg.Controller.ForgetSession(ctx, tenant, name)
	if errors.Is(err, runlog.ErrNotFound) || errors.Is(err, runlog.ErrSessionBusy) {
		return false, nil
	}
	return err == nil, err
}

// page looks at the runs of the tenant after one, and returns a page with those of the scope, so many at most, and their sessions.
func (e *Erasure) page(ctx context.Context, s *erasure.Scope, after string, most int) (*erasure.Kept, []string, error) {
	known, err := e.cfg.Retention.Known(ctx, s.Tenant)
	if err != nil {
		return nil, nil, err
	}
	at, found := slices.BinarySearch(known, after)
	if found {
		at++
	}
	known = known[at:]
	page := &erasure.Kept{Runs: []string{}}
	var (
		mu    sync.Mutex
		talks []string
		until = time.Now().Add(pageTime)
	)
	for len(known) > 0 && page.Next == "" {
		some := known[:min(len(known), 2*together)]
		known = known[len(some):]
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(together)
		for _, id := range some {
			group.Go(func() error {
				a, err := e.about(ctx, s, messages.Ref{Tenant: s.Tenant, Run: id})
				if err != nil || !a.meant {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if a.session != "" {
					talks = append(talks, a.session)
				}
				if a.ended {
					page.Runs = append(page.Runs, id)
				} else {
					page.Busy = append(page.Busy, id)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return nil, nil, err
		}
		if len(known) > 0 && (time.Now().After(until) || len(page.Runs)+len(page.Busy) > most-2*together) {
			page.Next = some[len(some)-1]
		}
	}
	slices.Sort(page.Runs)
	slices.Sort(page.Busy)
	slices.Sort(talks)
	return page, slices.Compact(talks), nil
}
