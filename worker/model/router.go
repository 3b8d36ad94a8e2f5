package model

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// RouterConfig names the providers of a worker.
type RouterConfig struct {
	Providers map[string]Provider // by name
	Default   string              // takes requests that name no provider; empty: they are refused
}

// Router hands every request to one of several providers, by the model it names:
//
//	""                 the default provider and its default model
//	"provider"         that provider and its default model
//	"provider/model"   that provider's model; the model may hold further slashes
//	"anything/else"    that model of the default provider
type Router struct {
	providers map[string]Provider
	byDefault string
}

var _ Provider = (*Router)(nil)

// NewRouter returns a router, or a *messages.FieldError. It may have no provider at all: then every call is an *Error
// of class NoProvider.
func NewRouter(c RouterConfig) (*Router, error) {
	for name, p := range c.Providers {
		if name == "" || strings.Contains(name, "/") {
			return nil, &messages.FieldError{Field: "providers", Reason: fmt.Sprintf("%q is no name: it is empty or holds a slash", name)}
		}
		if p == nil {
			return nil, &messages.FieldError{Field: "providers." + name, Reason: "is missing"}
		}
	}
	if _, ok := c.Providers[c.Default]; !ok && c.Default != "" {
		return nil, &messages.FieldError{
			Field: "default", Reason: fmt.Sprintf("%q is no provider; known: %s", c.Default, names(c.Providers)),
		}
	}
	return &Router{maps.Clone(c.Providers), c.Default}, nil
}

// Stream implements Provider.
func (r *Router) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	p, name, ok := r.route(req.Model)
	if !ok {
		return func(yield func(Delta, error) bool) { yield(Delta{}, r.unknown(req.Model)) }
	}
	req.Model = name
	return p.Stream(ctx, req)
}

// route returns a provider and the provider's own name of the model.
func (r *Router) route(name string) (Provider, string, bool) {
	first, rest, _ := strings.Cut(name, "/")
	if p, ok := r.providers[first]; ok {
		return p, rest, true
	}
	p, ok := r.providers[r.byDefault]
	return p, name, ok
}

func (r *Router) unknown(name string) error {
	e := &Error{Class: NoProvider, Detail: "no model provider is configured", Hint: "set OPENAI_API_KEY and OPENAI_MODEL"}
	if len(r.providers) > 0 {
		e.Detail = fmt.Sprintf("model %q names no provider, and none is the default; known providers: %s", name, names(r.providers))
		e.Hint = `name the model as "provider/model"`
	}
	return e
}

func names(m map[string]Provider) string { return strings.Join(slices.Sorted(maps.Keys(m)), ", ") }
