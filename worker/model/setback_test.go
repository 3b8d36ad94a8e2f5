package model_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/worker/model"
)

// Setback is called for each failed call that is retried, and not for the last one, which is the error.
func TestSetbacksAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		models []string
		retry  int
		want   []string
	}{
		"another model":        {[]string{"a", "b"}, -1, []string{"a overloaded 0 false"}},
		"again, then another":  {[]string{"a", "b"}, 1, []string{"a overloaded 1 true", "a overloaded 0 false", "b overloaded 1 true"}},
		"a single model":       {[]string{"a"}, -1, nil},
		"a single model again": {[]string{"a"}, 2, []string{"a overloaded 1 true", "a overloaded 2 true"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls, got []string
				var endpoints []model.Endpoint
				for _, name := range []string{"a", "b"} {
					endpoints = append(endpoints, model.Endpoint{Name: name, Provider: stub{name: name, err: busy(), log: &calls}})
				}
				r, err := model.NewRouter(model.RouterConfig{Endpoints: endpoints, Retry: model.RetryConfig{Retries: tc.retry}})
				if err != nil {
					t.Fatal(err)
				}
				_, failed := ask(t.Context(), r, model.Request{Models: tc.models, Setback: func(s model.Retried) {
					got = append(got, fmt.Sprint(s.Model, " ", s.Err.Class, " ", s.Attempt, " ", s.Wait > 0))
				}})
				if failed == nil {
					t.Error("no error")
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
