// Package kv is the family of tools with which a model keeps text under keys: kv_get, kv_set, kv_delete and kv_list. What a run keeps
// is its own unless its agent says in grants.kv that runs of the session, or all runs of the tenant, share it. No call
// reaches another tenant, another scope or anything else in the store, and every value has an end.
//
// [Memory] keeps the values of one process, for tests; package redisstore keeps those of a fleet.
package kv

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// described holds the description of each tool, <tool>.md.
//
//go:embed *.md
var described embed.FS

// Tools are kv_get, kv_set, kv_delete and kv_list. An error about the Config is a *messages.FieldError.
func Tools(store Store, c Config) ([]tools.Tool, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	f := family{store, c}
	one := func(key string) string { return "kv/" + url.PathEscape(key) }
	rows := []func() (tools.Tool, error){
		row("kv_get", messages.EffectRead, func(in getArgs) string { return one(in.Key) }, f, f.get),
		row("kv_set", messages.EffectIdempotent, func(in setArgs) string { return one(in.Key) }, f, f.set),
		row("kv_delete", messages.EffectIdempotent, func(in deleteArgs) string { return one(in.Key) }, f, f.delete),
		row("kv_list", messages.EffectRead, func(listArgs) string { return "kv" }, f, f.list),
	}
	all := make([]tools.Tool, len(rows))
	for i, open := range rows {
		var err error
		if all[i], err = open(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

type family struct {
	store  Store
	config Config
}

// row makes a tool of a function that is given the scope of the call.
func row[In any](name string, effect messages.Effect, key func(In) string, f family, do func(context.Context, tools.Call, Scope, In) (tools.Result, error)) func() (tools.Tool, error) {
	return func() (tools.Tool, error) {
		text, err := described.ReadFile(name + ".md")
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", name, err)
		}
		spec := messages.ToolSpec{Name: name, Effect: effect, Description: strings.TrimSpace(string(text))}
		t, err := tools.FuncOn(spec, key, func(ctx context.Context, c tools.Call, in In) (tools.Result, error) {
			scope, refusal, err := f.scopeOf(c)
			if err != nil {
				return tools.Result{}, err
			}
			if refusal != "" {
				return about("refused", tools.Failure(refusal)), nil
			}
			return do(ctx, c, scope, in)
		})
		if err != nil {
			return nil, err
		}
		on, ok := t.(tools.Resourcer)
		if !ok {
			return nil, fmt.Errorf("tool %s does not say what its calls are about", name)
		}
		return retried{t, on}, nil
	}
}

// retried is a tool whose calls are made again for a while when the store does not answer.
type retried struct {
	tools.Tool
	tools.Resourcer
}

// Retry implements tools.Retrier.
func (retried) Retry() tools.Retry {
	return tools.Retry{Retries: 3, First: 200 * time.Millisecond, Most: 2 * time.Second}
}

// scopeOf says where a call reads and writes, or why the model may not.
func (f family) scopeOf(c tools.Call) (s Scope, refusal string, err error) {
	s = Scope{Kind: c.Grants.KV, Tenant: c.Run.Tenant, Name: c.Run.Run}
	switch s.Kind {
	case "", messages.KVRun:
		s.Kind = messages.KVRun
	case messages.KVSession:
		if s.Name = c.Session; s.Name == "" {
			return s, "There is nowhere to keep keys: the agent shares them among the runs of a session (grants.kv: session), and this run has no session.", nil
		}
	case messages.KVTenant:
		s.Name = ""
	default:
		return s, "There is nowhere to keep keys: the agent's grants.kv is unknown to this worker.", nil
	}
	if !messages.Leaves(f.config.Scopes, s.Kind) {
		return s, fmt.Sprintf("There is nowhere to keep keys: the agent shares them by %s (grants.kv), which the operator of the worker does not grant (it grants %s).",
			s.Kind, orNone(f.config.Scopes)), nil
	}
	if err := s.Check(); err != nil {
		return s, "", err
	}
	return s, "", nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// failed is the answer after an error of the store: one that the model can act on, or that the store does not answer.
func failed(ctx context.Context, err error) (tools.Result, error) {
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		return about("conflict", tools.Failure(conflict.Error()+": read it again before you change it")), nil
	}
	if quota, ok := errors.AsType[*QuotaError](err); ok {
		return about("full", tools.Failure(quota.Error())), nil
	}
	if ctx.Err() != nil {
		return tools.Result{}, context.Cause(ctx)
	}
	// Reads change nothing, and a change that is repeated with its call key happens once: so it may be made again.
	r := tools.Failure("The store does not answer now. A change may have been made or not: read the key before you try again.")
	r.Transient = true
	return about("unavailable", r), nil
}

// about says in the meta of a failure what kind it is.
func about(reason string, r tools.Result) tools.Result {
	r.Meta = map[string]any{"reason": reason}
	return r
}
