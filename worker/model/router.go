package model

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Endpoint is a provider as agents name it.
type Endpoint struct {
	Name         string // without a slash
	Provider     Provider
	Model        string                  // that it uses when a request names none; empty: it is not known
	Capabilities *Capabilities           // of its models; nil: unknown, then nothing is refused for their sake
	Models       map[string]Capabilities // of the models that differ
}

// DefaultAttempts bounds the calls made for one request.
const DefaultAttempts = 12

// RouterConfig names the endpoints of a worker.
type RouterConfig struct {
	Endpoints []Endpoint
	Default   string // the endpoint of requests that name none; empty: they are refused

	Aliases map[string]string // further names of endpoints; an endpoint of the same name comes first

	// Prices says what a model costs, in USD per million tokens; not ok: unknown, which is above every ceiling.
	// Default: all are unknown.
	Prices   func(provider, model string) (in, out float64, ok bool)
	Selector Selector    // Default: the order of the request.
	Retry    RetryConfig // Of each model.
	Attempts int         // Calls of all models together for one request. Default 12.
	Breaker  BreakerConfig

	Paused func(provider string) bool // asked before each request; default: none is paused
}

// Router hands every request to one of several endpoints, by the models that it names:
//
//	""                 the default endpoint and its default model
//	"provider"         that endpoint and its default model
//	"provider/model"   that endpoint's model; the model may hold further slashes
//	"anything/else"    that model of the default endpoint
//
// Of several models it takes the first that can do what the request needs, costs no more than the request allows and
// is not known to be down. A call that fails is made again by the rules of [Retry]; after that the next model is asked,
// unless the error says that the request is to blame. Text of one that failed is taken back by a Delta with Reset.
type Router struct {
	config   RouterConfig
	byName   map[string]Endpoint
	circuits *circuits
	meter    meter
}

var _ Provider = (*Router)(nil)

// NewRouter returns a router, or a *messages.FieldError. It may have no endpoint at all: then every call is an *Error
// of class NoProvider.
func NewRouter(c RouterConfig) (*Router, error) {
	r := &Router{config: c, byName: map[string]Endpoint{}, circuits: newCircuits(c.Breaker), meter: meter{m: map[circuitKey]*measured{}}}
	for _, e := range c.Endpoints {
		switch {
		case e.Name == "" || strings.Contains(e.Name, "/"):
			return nil, &messages.FieldError{Field: "endpoints", Reason: fmt.Sprintf("%q is not a valid name: it is empty or contains a slash", e.Name)}
		case e.Provider == nil:
			return nil, &messages.FieldError{Field: "endpoints." + e.Name, Reason: "is missing"}
		case r.byName[e.Name].Provider != nil:
			return nil, &messages.FieldError{Field: "endpoints." + e.Name, Reason: "is there twice"}
		}
		r.byName[e.Name] = e
	}
	if _, ok := r.byName[c.Default]; !ok && c.Default != "" {
		return nil, &messages.FieldError{
			Field: "default", Reason: fmt.Sprintf("%q is not a provider; known: %s", c.Default, r.names()),
		}
	}
	if r.config.Attempts == 0 {
		r.config.Attempts = DefaultAttempts
	}
	if r.config.Retry.Retries == 0 {
		r.config.Retry.Retries = DefaultRetries
	}
	return r, nil
}

// Circuits are the models whose last call failed.
func (r *Router) Circuits() []Circuit { return r.circuits.list() }

// Stream implements Provider.
func (r *Router) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		usable, passed, err := r.candidates(ctx, &req)
		if err != nil {
			yield(Delta{}, err)
			return
		}
		c := &call{router: r, req: req, passed: passed, left: r.config.Attempts, yield: yield}
		for _, u := range usable {
			c.tries = append(c.tries, try{Candidate: u})
		}
		c.run(ctx)
	}
}

// candidates are the models that can take a request, in the order to try them, and why the others cannot.
func (r *Router) candidates(ctx context.Context, req *Request) (usable []Candidate, passed []string, err error) {
	wanted := req.Models
	if len(wanted) == 0 {
		wanted = []string{req.Model}
	}
	pass := func(name, why string) { passed = append(passed, name+": "+why) }
	unknown, small, paused := 0, 0, ""
	for _, name := range wanted {
		c, ok := r.resolve(name)
		if !ok {
			unknown++
			pass(name, "it names no provider")
			continue
		}
		if lacks := c.Capabilities.lacks(req); lacks != "" {
			if strings.Contains(lacks, "window") {
				small++
			}
			pass(c.String(), lacks)
			continue
		}
		if dear := c.dear(req.MaxPrice); dear != "" {
			pass(c.String(), dear)
			continue
		}
		if r.config.Paused != nil && r.config.Paused(c.Endpoint) {
			paused = cmp.Or(paused, c.Endpoint)
			pass(c.String(), "an operator paused the provider")
			continue
		}
		if !slices.ContainsFunc(usable, func(o Candidate) bool { return o.key() == c.key() }) {
			usable = append(usable, c)
		}
	}
	switch {
	case len(usable) > 0:
	case paused != "":
		return nil, nil, &Error{
			Class: Overloaded, Detail: strings.Join(passed, "; "), Hint: "resume provider " + paused, Paused: paused,
		}
	case unknown == len(wanted):
		return nil, nil, r.unknown(wanted[0])
	case small > 0 && small+unknown == len(wanted):
		return nil, nil, &Error{
			Class: ContextLength, Detail: strings.Join(passed, "; "),
			Hint: "name a model with a larger context window in the agent's models, or give it less to read",
		}
	default:
		return nil, nil, &Error{
			Class: NoProvider, Detail: "no model of the agent can take this request: " + strings.Join(passed, "; "),
			Hint: "name another model in the agent's models",
		}
	}
	if r.config.Selector == nil {
		return usable, passed, nil
	}
	chosen, err := r.selected(ctx, req, usable)
	return chosen, passed, err
}

// selected is what the selector wants of what it was offered. It is the one place where a panic of a selector ends.
func (r *Router) selected(ctx context.Context, req *Request, usable []Candidate) (out []Candidate, err error) {
	defer func() {
		if v := recover(); v != nil { // its value may hold anything
			out, err = nil, &Error{Class: Unknown, Detail: fmt.Sprintf("the model selector panicked (%T): a defect of the selector", v)}
		}
	}()
	var unknown []string
	for _, c := range r.config.Selector.Select(ctx, *req, slices.Clone(usable)) {
		same := func(o Candidate) bool { return o.key() == c.key() }
		switch i := slices.IndexFunc(usable, same); {
		case i < 0:
			unknown = append(unknown, c.String())
		case !slices.ContainsFunc(out, same):
			out = append(out, usable[i])
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	offered := make([]string, len(usable))
	for i, c := range usable {
		offered[i] = c.String()
	}
	e := &Error{Class: NoProvider, Detail: "the model selector leaves no model for this request, of those offered: " + strings.Join(offered, ", ")}
	if len(unknown) > 0 {
		e.Detail += "; it named " + strict.Clip(strings.Join(unknown, ", "), maxNamed) + ", which was not offered"
	}
	return nil, e
}

// maxNamed bounds what an error repeats of a selector's choice, in bytes.
const maxNamed = 512

// resolve finds the endpoint and its own name of a model.
func (r *Router) resolve(name string) (Candidate, bool) {
	first, rest, _ := strings.Cut(name, "/")
	e, ok := r.byName[first]
	if !ok {
		e, ok = r.byName[r.config.Aliases[first]]
	}
	if !ok {
		e, ok = r.byName[r.config.Default]
		rest = name
	}
	if !ok {
		return Candidate{}, false
	}
	if rest == "" {
		rest = e.Model
	}
	c := Candidate{Endpoint: e.Name, Model: rest, Capabilities: e.of(rest)}
	if r.config.Prices != nil {
		c.In, c.Out, c.Priced = r.config.Prices(e.Name, rest)
	}
	return c, true
}

// of is what a model of the endpoint can do.
func (e *Endpoint) of(model string) Capabilities {
	if c, ok := e.Models[model]; ok {
		return c
	}
	if e.Capabilities != nil {
		return *e.Capabilities
	}
	return DefaultCapabilities()
}

func (c Candidate) key() circuitKey { return circuitKey{c.Endpoint, c.Model} }

// dear says why a candidate is above a ceiling; empty: it is not.
func (c Candidate) dear(ceiling *float64) string {
	switch {
	case ceiling == nil:
		return ""
	case !c.Priced:
		return "its price is unknown, and the agent has a maxPrice"
	case c.In > *ceiling || c.Out > *ceiling:
		return fmt.Sprintf("it costs %s in and %s out per million tokens, more than the agent's maxPrice of %s", messages.Money(c.In), messages.Money(c.Out), messages.Money(*ceiling))
	default:
		return ""
	}
}

func (r *Router) unknown(name string) error {
	e := &Error{Class: NoProvider, Detail: "no model provider is configured", Hint: "set OPENAI_API_KEY and OPENAI_MODEL, or LONGSHORE_PROVIDERS"}
	if len(r.byName) > 0 {
		e.Detail = fmt.Sprintf("model %q names no provider, and none is the default; known providers: %s", name, r.names())
		e.Hint = `name the model as "provider/model"`
	}
	return e
}

func (r *Router) names() string { return strings.Join(slices.Sorted(maps.Keys(r.byName)), ", ") }
