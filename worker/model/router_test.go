package model_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// named replies with its name and the model that it was asked for.
type named string

func (n named) Stream(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		yield(model.Delta{Reply: &model.Reply{Provider: string(n), Model: r.Model}}, nil)
	}
}

func TestRouter(t *testing.T) {
	two := []model.Endpoint{{Name: "openai", Provider: named("openai")}, {Name: "local", Provider: named("local")}}
	for _, tt := range []struct {
		name, byDefault, model string
		fails                  bool
		want                   string // provider and model, or a part of the error
	}{
		{"nothing", "openai", "", false, "openai:"},
		{"a provider", "openai", "local", false, "local:"},
		{"a provider's model", "openai", "local/llama", false, "local:llama"},
		{"a model with slashes", "openai", "local/meta/llama", false, "local:meta/llama"},
		{"a slash and nothing", "openai", "local/", false, "local:"},
		{"the default's model", "openai", "gpt-4o", false, "openai:gpt-4o"},
		{"a vendor that is no provider", "openai", "meta/llama", false, "openai:meta/llama"},
		{"names are exact", "openai", "Local", false, "openai:Local"},
		{"a leading slash", "openai", "/local", false, "openai:/local"},
		{"another name", "openai", "lite", false, "openai:"},
		{"another name's model", "openai", "lite/llama", false, "openai:llama"},
		{"a provider, without default", "", "local/llama", false, "local:llama"},
		{"a model, without default", "", "meta/llama", true, `"meta/llama" names no provider, and none is the default; known providers: local, openai`},
		{"nothing, without default", "", "", true, "known providers: local, openai"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := model.NewRouter(model.RouterConfig{Endpoints: two, Default: tt.byDefault, Aliases: map[string]string{"lite": "openai", "local": "openai"}})
			if err != nil {
				t.Fatal(err)
			}
			got := route(t, r, tt.model)
			if !tt.fails && got != tt.want || tt.fails && !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	r, err := model.NewRouter(model.RouterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if got := route(t, r, "gpt-4o"); !strings.Contains(got, "no model provider is configured") || !strings.Contains(got, "OPENAI_API_KEY") {
		t.Errorf("got %s", got)
	}
}

func route(t *testing.T, r *model.Router, name string) string {
	t.Helper()
	n, out := 0, ""
	for d, err := range r.Stream(t.Context(), model.Request{Model: name}) {
		n++
		if e, ok := errors.AsType[*model.Error](err); ok {
			if e.Class != model.NoProvider || e.Retryable() || e.Hint == "" {
				t.Errorf("error %+v", e)
			}
			out = e.Error()
		} else {
			out = d.Reply.Provider + ":" + d.Reply.Model
		}
	}
	if n != 1 {
		t.Errorf("%d deltas", n)
	}
	return out
}

func TestRouterRefuses(t *testing.T) {
	for _, tt := range []struct {
		field  string
		config model.RouterConfig
	}{
		{"default", model.RouterConfig{Default: "x"}},
		{"default", model.RouterConfig{Default: "x", Endpoints: []model.Endpoint{{Name: "y", Provider: named("y")}}}},
		{"endpoints", model.RouterConfig{Endpoints: []model.Endpoint{{Name: "a/b", Provider: named("y")}}}},
		{"endpoints", model.RouterConfig{Endpoints: []model.Endpoint{{Provider: named("y")}}}},
		{"endpoints.z", model.RouterConfig{Endpoints: []model.Endpoint{{Name: "z"}}}},
		{"endpoints.z", model.RouterConfig{Endpoints: []model.Endpoint{{Name: "z", Provider: named("z")}, {Name: "z", Provider: named("z")}}}},
	} {
		_, err := model.NewRouter(tt.config)
		if f, ok := errors.AsType[*messages.FieldError](err); !ok || f.Field != tt.field {
			t.Errorf("%+v: got %v", tt.config, err)
		}
	}
}

func TestClassesHaveCodes(t *testing.T) {
	retryable := []model.Class{
		model.RateLimited, model.Overloaded, model.Timeout, model.Network, model.Truncated, model.ModelOutput, model.Unknown,
	}
	for _, c := range model.Classes() {
		e := &model.Error{Class: c}
		if _, ok := messages.Codes()[e.Code()]; !ok {
			t.Errorf("%s has the unknown code %q", c, e.Code())
		}
		if e.Retryable() != slices.Contains(retryable, c) {
			t.Errorf("%s: retryable is %t", c, e.Retryable())
		}
	}
}
