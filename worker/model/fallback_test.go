package model_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// stub answers every call in the same way, and writes it down.
type stub struct {
	name string
	text string // before the end
	err  error  // instead of a reply
	log  *[]string
	last *model.Request
}

func (s stub) Stream(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		*s.log = append(*s.log, s.name+":"+r.Model)
		if s.last != nil {
			*s.last = r
		}
		if s.text != "" && !yield(model.Delta{Text: s.text}, nil) {
			return
		}
		if s.err != nil {
			yield(model.Delta{}, s.err)
			return
		}
		yield(model.Delta{Reply: &model.Reply{Provider: s.name, Model: r.Model}}, nil)
	}
}

func able() model.Capabilities {
	return model.Capabilities{Tools: true, Streaming: true, JSONSchema: true, JSONMode: true, Images: true}
}

// ask makes one call and tells what it yielded.
func ask(ctx context.Context, p model.Provider, r model.Request) (heard []string, failed *model.Error) {
	for d, err := range p.Stream(ctx, r) {
		switch {
		case err != nil:
			failed, _ = errors.AsType[*model.Error](err)
			heard = append(heard, "error")
		case d.Reset:
			heard = append(heard, "reset")
		case d.Reply != nil:
			heard = append(heard, "reply "+d.Reply.Provider+":"+d.Reply.Model)
		default:
			heard = append(heard, d.Text)
		}
	}
	return heard, failed
}

func TestRouterChoosesByNeeds(t *testing.T) {
	image := []messages.Message{{Role: messages.RoleUser, Content: []messages.Block{{Image: &messages.Image{URL: "https://x/y.png"}}}}}
	inResult := []messages.Message{{Role: messages.RoleTool, Content: []messages.Block{{ToolResult: &messages.ToolResult{Content: image[0].Content}}}}}
	long := []messages.Message{{Role: messages.RoleUser, Content: messages.TextContent(strings.Repeat("word ", 4000))}} // about 5000 tokens
	tools := []messages.ToolSpec{{Name: "t", InputSchema: []byte(`{}`)}}
	small, big := able(), able()
	small.ContextWindow, big.ContextWindow, big.MaxOutput = 4096, 100_000, 2000
	price := func(f float64) *float64 { return &f }
	models := []string{"text", "eyes", "small", "big", "other"}
	for name, tc := range map[string]struct {
		request model.Request
		want    string // reply, or a part of the error
		class   model.Class
	}{
		"nothing needed":             {model.Request{Models: models}, "reply text:text-1", ""},
		"a single model":             {model.Request{Model: "eyes/x"}, "reply eyes:x", ""},
		"models go before a model":   {model.Request{Model: "eyes", Models: []string{"small"}}, "reply small:", ""},
		"tools":                      {model.Request{Models: models, Tools: tools}, "reply eyes:", ""},
		"a model that differs":       {model.Request{Models: []string{"text/special", "eyes"}, Tools: tools}, "reply text:special", ""},
		"images":                     {model.Request{Models: models, Messages: image}, "reply eyes:", ""},
		"images of a tool":           {model.Request{Models: models, Messages: inResult}, "reply eyes:", ""},
		"a long conversation":        {model.Request{Models: []string{"small", "big"}, Messages: long}, "reply big:", ""},
		"an unknown window":          {model.Request{Models: []string{"eyes", "big"}, Messages: long}, "reply eyes:", ""},
		"a long reply":               {model.Request{Models: []string{"small", "big"}, MaxTokens: 5000}, "reply big:", ""},
		"a ceiling":                  {model.Request{Models: models, MaxPrice: price(2)}, "reply small:", ""},
		"a ceiling of nothing":       {model.Request{Models: models, MaxPrice: price(0)}, "reply big:", ""},
		"an unknown provider is not": {model.Request{Models: []string{"unknown/x", "eyes"}}, "reply eyes:", ""},
		"all too dear":               {model.Request{Models: []string{"text", "eyes"}, MaxPrice: price(1)}, "text/text-1: its price is unknown, and the agent has a maxPrice; eyes: it costs $1.00 in and $10.00 out per million tokens, more than the agent's maxPrice of $1.00", model.NoProvider},
		"none sees":                  {model.Request{Models: []string{"text"}, Messages: image}, "text/text-1: it takes no images", model.NoProvider},
		"none takes tools":           {model.Request{Model: "text", Tools: tools}, "text/text-1: it takes no tools", model.NoProvider},
		"none is large enough":       {model.Request{Models: []string{"small"}, Messages: long}, "more than its window of 4096", model.ContextLength},
		"none is known":              {model.Request{Models: []string{"a/b", "c"}}, `model "a/b" names no provider, and none is the default; known providers: big, eyes, other, small, text`, model.NoProvider},
	} {
		t.Run(name, func(t *testing.T) {
			var log []string
			at := func(name, def string, c *model.Capabilities) model.Endpoint {
				return model.Endpoint{Name: name, Model: def, Provider: stub{name: name, log: &log}, Capabilities: c}
			}
			text := at("text", "text-1", &model.Capabilities{Streaming: true})
			text.Models = map[string]model.Capabilities{"special": able()}
			r, err := model.NewRouter(model.RouterConfig{
				Endpoints: []model.Endpoint{text, at("eyes", "", nil), at("small", "", &small), at("big", "", &big), at("other", "", nil)},
				Prices: func(provider, _ string) (in, out float64, ok bool) {
					p, ok := map[string][2]float64{"eyes": {1, 10}, "small": {2, 2}, "big": {0, 0}}[provider]
					return p[0], p[1], ok
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			heard, failed := ask(t.Context(), r, tc.request)
			switch {
			case tc.class == "" && (len(heard) != 1 || heard[0] != tc.want):
				t.Errorf("heard %q (%v), want %q", heard, failed, tc.want)
			case tc.class != "" && (failed == nil || failed.Class != tc.class || !strings.Contains(failed.Error(), tc.want) || len(log) != 0):
				t.Errorf("heard %q, error %v after %q, want %s %q", heard, failed, log, tc.class, tc.want)
			}
		})
	}
}

func TestRouterFitsTheRequest(t *testing.T) {
	schema := &model.Format{Name: "f", Schema: []byte(`{"type":"object"}`)}
	anyObject := &model.Format{Name: "f"}
	for name, tc := range map[string]struct {
		can        model.Capabilities
		wish, want *model.Format
		max        int
	}{
		"schema":               {model.Capabilities{JSONSchema: true, JSONMode: true}, schema, schema, 5000},
		"only a mode":          {model.Capabilities{JSONMode: true}, schema, anyObject, 5000},
		"neither":              {model.Capabilities{}, schema, nil, 5000},
		"any object":           {model.Capabilities{JSONMode: true}, anyObject, anyObject, 5000},
		"any object, no mode":  {model.Capabilities{JSONSchema: true}, anyObject, nil, 5000},
		"free":                 {model.Capabilities{JSONSchema: true, JSONMode: true}, nil, nil, 5000},
		"a short-winded model": {model.Capabilities{MaxOutput: 1000}, nil, nil, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			var log []string
			var got model.Request
			r, err := model.NewRouter(model.RouterConfig{Endpoints: []model.Endpoint{
				{Name: "a", Provider: stub{name: "a", log: &log, last: &got}, Capabilities: &tc.can},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, failed := ask(t.Context(), r, model.Request{Key: "k", Models: []string{"a/b"}, MaxTokens: 5000, Format: tc.wish}); failed != nil {
				t.Fatal(failed)
			}
			if diff := cmp.Diff(model.Request{Key: "k", Model: "b", MaxTokens: tc.max, Format: tc.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFallback(t *testing.T) {
	failing := func(c model.Class) *model.Error { return &model.Error{Class: c, Detail: "of a", Hint: "do this"} }
	foreign := errors.New("foreign")
	for name, tc := range map[string]struct {
		a, b  stub
		heard []string
		calls []string
		class model.Class // of the error
		hint  string      // contained
		after time.Duration
	}{
		"not needed":                  {stub{}, stub{}, []string{"reply a:"}, []string{"a:"}, "", "", 0},
		"a refused key":               {stub{err: failing(model.Auth)}, stub{}, []string{"reply b:"}, []string{"a:", "b:"}, "", "", 0},
		"no credit":                   {stub{err: failing(model.Quota)}, stub{}, []string{"reply b:"}, []string{"a:", "b:"}, "", "", 0},
		"a long limit":                {stub{err: limited(time.Minute)}, stub{}, []string{"reply b:"}, []string{"a:", "b:"}, "", "", 0},
		"a short limit":               {stub{err: limited(time.Second)}, stub{}, []string{"reply b:"}, []string{"a:", "a:", "a:", "b:"}, "", "", 0},
		"overloaded":                  {stub{err: failing(model.Overloaded)}, stub{}, []string{"reply b:"}, []string{"a:", "a:", "a:", "b:"}, "", "", 0},
		"no network":                  {stub{err: failing(model.Network)}, stub{}, []string{"reply b:"}, []string{"a:", "a:", "a:", "b:"}, "", "", 0},
		"silence":                     {stub{err: failing(model.Timeout)}, stub{}, []string{"reply b:"}, []string{"a:", "a:", "a:", "b:"}, "", "", 0},
		"no such model":               {stub{err: &model.Error{Class: model.InvalidRequest, Status: 404}}, stub{}, []string{"reply b:"}, []string{"a:", "b:"}, "", "", 0},
		"no such model, as a 400":     {stub{err: &model.Error{Class: model.InvalidRequest, Status: 400, Detail: "The model `x` does not exist"}}, stub{}, []string{"reply b:"}, []string{"a:", "b:"}, "", "", 0},
		"cut off, and taken back":     {stub{text: "half", err: failing(model.Truncated)}, stub{text: "whole"}, []string{"half", "reset", "half", "reset", "half", "reset", "whole", "reply b:"}, []string{"a:", "a:", "a:", "b:"}, "", "", 0},
		"taken back for a bare reply": {stub{text: "half", err: failing(model.Auth)}, stub{}, []string{"half", "reset", "reply b:"}, []string{"a:", "b:"}, "", "", 0},
		"an invalid request":          {stub{err: failing(model.InvalidRequest)}, stub{}, []string{"error"}, []string{"a:"}, model.InvalidRequest, "do this", 0},
		"a filter":                    {stub{err: failing(model.ContentFilter)}, stub{}, []string{"error"}, []string{"a:"}, model.ContentFilter, "do this", 0},
		"a foreign error":             {stub{err: foreign}, stub{}, []string{"error"}, []string{"a:"}, "", "", 0},
		"too long for both":           {stub{err: failing(model.ContextLength)}, stub{}, []string{"error"}, []string{"a:"}, model.ContextLength, "do this; no model did: a: context_length; b: its context window is not known to be larger", 0},
		"both refused":                {stub{err: failing(model.Auth)}, stub{err: failing(model.Quota)}, []string{"error"}, []string{"a:", "b:"}, model.Auth, "do this; no model did: a: auth; b: quota", 0},
		"the one to wait for":         {stub{err: failing(model.Auth)}, stub{err: limited(time.Hour)}, []string{"error"}, []string{"a:", "b:"}, model.RateLimited, "no model did: a: auth; b: rate_limited (HTTP 429)", time.Hour},
		"the shorter wait":            {stub{err: limited(time.Hour)}, stub{err: limited(time.Minute)}, []string{"error"}, []string{"a:", "b:"}, model.RateLimited, "", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []string
				tc.a.name, tc.a.log, tc.b.name, tc.b.log = "a", &calls, "b", &calls
				r, err := model.NewRouter(model.RouterConfig{
					Endpoints: []model.Endpoint{{Name: "a", Provider: tc.a}, {Name: "b", Provider: tc.b}},
					Retry:     model.RetryConfig{Retries: 2},
				})
				if err != nil {
					t.Fatal(err)
				}
				heard, failed := ask(t.Context(), r, model.Request{Models: []string{"a", "b"}})
				if diff := cmp.Diff(tc.heard, heard); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(tc.calls, calls); diff != "" {
					t.Error(diff)
				}
				if failed == nil {
					if tc.class != "" {
						t.Errorf("no error, want %s", tc.class)
					}
					return
				}
				if !strings.HasPrefix(failed.Detail, "a") && !strings.HasPrefix(failed.Detail, "b") {
					t.Errorf("the error does not name its model: %v", failed)
				}
				if failed.Class != tc.class || !strings.Contains(failed.Hint, tc.hint) || failed.RetryAfter != tc.after {
					t.Errorf("error %+v, want %s, %q, %s", failed, tc.class, tc.hint, tc.after)
				}
			})
		})
	}
}

func TestFallbackToALargerWindow(t *testing.T) {
	var calls []string
	full := stub{err: &model.Error{Class: model.ContextLength, Status: 400}, log: &calls}
	at := func(name string, window int, s stub) model.Endpoint {
		s.name = name
		return model.Endpoint{Name: name, Provider: s, Capabilities: &model.Capabilities{ContextWindow: window}}
	}
	r, err := model.NewRouter(model.RouterConfig{Endpoints: []model.Endpoint{
		at("a", 8000, full), at("b", 8000, full), at("c", 0, full), at("d", 32_000, full), at("e", 16_000, full), at("f", 64_000, stub{log: &calls}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	heard, _ := ask(t.Context(), r, model.Request{Models: []string{"a", "b", "c", "d", "e", "f"}})
	if diff := cmp.Diff([]string{"a:", "d:", "f:"}, calls); diff != "" || heard[len(heard)-1] != "reply f:" {
		t.Errorf("%s, heard %q", diff, heard)
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		var endpoints []model.Endpoint
		var models []string
		for i := range 9 {
			name := fmt.Sprint("e", i)
			models = append(models, name)
			endpoints = append(endpoints, model.Endpoint{Name: name, Provider: stub{name: name, err: busy(), log: &calls}})
		}
		r, err := model.NewRouter(model.RouterConfig{Endpoints: endpoints, Attempts: 6})
		if err != nil {
			t.Fatal(err)
		}
		_, failed := ask(t.Context(), r, model.Request{Models: models})
		if diff := cmp.Diff([]string{"e0:", "e0:", "e0:", "e0:", "e1:", "e1:"}, calls); diff != "" {
			t.Error(diff)
		}
		if failed == nil || failed.Class != model.Overloaded || !strings.Contains(failed.Hint, "e2: no attempts were left") {
			t.Errorf("error %v", failed)
		}
	})
}

// reversed prefers the last, offers what is not there, and offers one twice.
type reversed struct{ none bool }

func (s reversed) Select(_ context.Context, _ model.Request, from []model.Candidate) []model.Candidate {
	if s.none {
		return nil
	}
	out := slices.Clone(from)
	slices.Reverse(out)
	return append([]model.Candidate{{Endpoint: "unknown"}, out[0]}, out...)
}

func TestSelector(t *testing.T) {
	var calls []string
	config := model.RouterConfig{Selector: reversed{}, Endpoints: []model.Endpoint{
		{Name: "a", Provider: stub{name: "a", log: &calls}},
		{Name: "b", Provider: stub{name: "b", log: &calls, err: &model.Error{Class: model.Auth}}},
	}}
	r, err := model.NewRouter(config)
	if err != nil {
		t.Fatal(err)
	}
	if heard, _ := ask(t.Context(), r, model.Request{Models: []string{"a", "b"}}); !slices.Equal(calls, []string{"b:", "a:"}) {
		t.Errorf("called %q, heard %q", calls, heard)
	}
	config.Selector = reversed{none: true}
	if r, err = model.NewRouter(config); err != nil {
		t.Fatal(err)
	}
	if _, failed := ask(t.Context(), r, model.Request{Models: []string{"a", "b"}}); failed == nil || failed.Class != model.NoProvider {
		t.Errorf("nothing selected: %v", failed)
	}
}

func TestFallbackStopsWithItsConsumer(t *testing.T) {
	var calls []string
	r, err := model.NewRouter(model.RouterConfig{Endpoints: []model.Endpoint{
		{Name: "a", Provider: stub{name: "a", text: "x", log: &calls, err: busy()}}, {Name: "b", Provider: stub{name: "b", log: &calls}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range r.Stream(t.Context(), model.Request{Models: []string{"a", "b"}}) {
		break
	}
	if len(calls) != 1 || len(r.Circuits()) != 0 {
		t.Errorf("calls %q, circuits %v", calls, r.Circuits())
	}
}
