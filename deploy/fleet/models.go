package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/worker/circuit"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/governor"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/openai"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// models makes the providers that the settings name, each behind the guard of the parts, and the endpoints of the parts as
// they are. When the settings name no script, this one is played, unless it is nil.
func models(s settings.Models, silence time.Duration, script *scripted.Script, parts Parts) (model.Provider, error) {
	g := parts.guard
	table, err := priceTable(s)
	if err != nil {
		return nil, err
	}
	config := model.RouterConfig{Default: s.Default(), Prices: table.perMillion, Paused: g.paused, Selector: parts.Selector}
	if n := s.ModelRetries; n != nil {
		config.Retry.Retries = *n
		if *n == 0 {
			config.Retry.Retries = -1 // none
		}
	}
	if g != nil {
		config.Retry.OnRetry = g.retries.count
	}
	all := s.Providers()
	for i := range all {
		p := &all[i]
		e, err := endpoint(p, waits{s.ModelStart, silence, s.ModelReply})
		if err != nil {
			return nil, settings.Errorf("%s: %v", p.Source(), err)
		}
		config.Endpoints = append(config.Endpoints, e)
	}
	if script != nil && !slices.ContainsFunc(all, func(p settings.Provider) bool { return p.Name == settings.NameScripted }) {
		config.Endpoints = append(config.Endpoints, model.Endpoint{Name: settings.NameScripted, Provider: scripted.New(script)})
		if len(all) == 0 {
			config.Default = settings.NameScripted
		}
	}
	for i := range config.Endpoints {
		e := &config.Endpoints[i]
		e.Provider = g.wrap(e.Name, e.Provider)
	}
	config.Endpoints = append(config.Endpoints, parts.Endpoints...)
	if config.Default == "" && len(config.Endpoints) > 0 {
		config.Default = config.Endpoints[0].Name
	}
	config.Aliases = map[string]string{settings.NameLite: config.Default} // without a provider of its own
	router, err := model.NewRouter(config)
	if err != nil {
		return nil, fmt.Errorf("route models: %w", err)
	}
	return router, nil
}

// waits are how long a provider may take to begin an answer, be silent in it, and take for all of it; 0: as it has it,
// and all of it without a bound.
type waits struct{ start, silence, whole time.Duration }

// provider makes the leaf of a provider's kind. Without capabilities it has the usual ones.
func provider(p *settings.Provider, most waits, can *model.Capabilities) (model.Provider, error) {
	at := httpstream.Endpoint{BaseURL: p.BaseURL, APIKey: p.Key, NoAuth: p.NoAuth(), StartTimeout: most.start, IdleTimeout: most.silence}
	switch p.Kind {
	case settings.KindOpenAI:
		return openai.New(openai.Config{
			Endpoint: at, Organization: p.Organization, Model: p.Model, Flavour: openai.Flavour(p.Flavour), APIVersion: p.APIVersion, Capabilities: can,
		})
	case settings.KindAnthropic:
		return anthropic.New(anthropic.Config{Endpoint: at, Model: p.Model, Capabilities: can})
	case settings.KindScripted:
		data, err := document.Read(p.Script, scripted.MaxScript)
		if err != nil {
			return nil, err
		}
		script, err := scripted.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Script, err)
		}
		return scripted.New(script), nil
	default:
		return nil, fmt.Errorf("kind %s is not built in", p.Kind)
	}
}

// endpoint is what the router knows about a provider. Where the settings say nothing, the provider's defaults apply.
func endpoint(p *settings.Provider, most waits) (model.Endpoint, error) {
	usual, err := provider(p, most, nil)
	if err != nil {
		return model.Endpoint{}, err
	}
	can := model.DefaultCapabilities()
	if c, ok := usual.(interface{ Capabilities() model.Capabilities }); ok {
		can = c.Capabilities()
	}
	can = able(can, p.Ability)
	e := model.Endpoint{Name: p.Name, Model: p.Model, Capabilities: &can}
	all := can // the leaf may refuse what none of its models can do, and no more
	for name, differs := range p.Models {
		if e.Models == nil {
			e.Models = map[string]model.Capabilities{}
		}
		m := able(can, differs)
		e.Models[name], all = m, all.Or(m)
	}
	leaf, err := provider(p, most, &all)
	if err != nil {
		return e, err
	}
	e.Provider = hintsOf(p, leaf)
	if most.whole > 0 {
		e.Provider = model.ReplyTime(e.Provider, most.whole)
	}
	return e, nil
}

// able changes what the file says.
func able(can model.Capabilities, said settings.Ability) model.Capabilities {
	set := func(to *bool, from *bool) {
		if from != nil {
			*to = *from
		}
	}
	c := said.Capabilities
	set(&can.Tools, c.Tools)
	set(&can.Streaming, c.Streaming)
	set(&can.JSONSchema, c.JSONSchema)
	set(&can.JSONMode, c.JSONMode)
	set(&can.Images, c.Images)
	set(&can.Files, c.Files)
	set(&can.Reasoning, c.Reasoning)
	if said.ContextWindow != 0 {
		can.ContextWindow = said.ContextWindow
	}
	if said.MaxOutput != 0 {
		can.MaxOutput = said.MaxOutput
	}
	return can
}

// modelMetrics show the circuits, if the provider has any.
func modelMetrics(m *observability.Metrics, p model.Provider) error {
	r, ok := p.(interface{ Circuits() []model.Circuit })
	if !ok {
		return nil
	}
	return m.Gauge("model_circuits_open", "Models whose circuit is open because they failed too often.", func() float64 {
		n := 0
		for _, c := range r.Circuits() {
			if c.State != circuit.Closed {
				n++
			}
		}
		return float64(n)
	})
}

// modelStates tells how calls of models go, if the provider knows, and what they are limited to; nil limits: to nothing.
func modelStates(p model.Provider, limits func(provider, model string) governor.Limits) func() []messages.ModelState {
	r, ok := p.(interface{ Health() []model.Health })
	if !ok {
		return nil
	}
	return func() []messages.ModelState {
		all := r.Health()
		all = all[:min(len(all), messages.MaxWorkerModels)]
		out := make([]messages.ModelState, len(all))
		for i, h := range all {
			s := messages.ModelState{
				Provider: h.Endpoint, Model: h.Model, Circuit: string(h.State), Failures: h.Failures, Answered: h.Answered, Failed: h.Failed,
				P50: h.P50.Milliseconds(), P95: h.P95.Milliseconds(),
			}
			if h.Failures > 0 {
				s.Last = (&model.Error{Class: h.Last}).Code()
			}
			if h.State != circuit.Closed {
				s.Until = &h.Until
			}
			if limits != nil {
				l := limits(h.Endpoint, h.Model)
				s.RequestsPerMinute, s.TokensPerMinute, s.InFlight = l.RPM, l.TPM, l.InFlight
			}
			out[i] = s
		}
		return out
	}
}
