package settings_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-run/longshore/deploy/settings"
)

// The provider of /run-lite is never the default, and takes what it is not told from OPENAI_*.
func TestLiteProvider(t *testing.T) {
	file, _ := providersEnv(t, "providers: [{name: fast, kind: openai, keyEnv: OPENAI_API_KEY, model: f}]")
	for name, tc := range map[string]struct {
		environ []string
		want    *settings.Provider
		first   string
	}{
		"none":    {with(nil), nil, "openai"},
		"a model": {with([]string{"OPENAI_LITE_MODEL=s", "OPENAI_BASE_URL=http://h/v1"}), &settings.Provider{BaseURL: "http://h/v1", Key: "sk-123456", Model: "s"}, "openai"},
		"an address": {
			with([]string{"OPENAI_LITE_BASE_URL=http://l/v1"}), &settings.Provider{BaseURL: "http://l/v1", Key: "sk-123456", Model: "m"}, "openai",
		},
		"beside a file that takes the key": {
			append(file, "OPENAI_API_KEY=sk-123456", "OPENAI_LITE_MODEL=s"), &settings.Provider{Key: "sk-123456", Model: "s"}, "fast",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s settings.Worker
			if err := settings.Load(&s, tc.environ); err != nil {
				t.Fatal(err)
			}
			var got *settings.Provider
			for _, p := range s.Providers() {
				if p.Name == settings.NameLite {
					got = &p
				}
			}
			if tc.want != nil {
				tc.want.Name, tc.want.Kind = settings.NameLite, settings.KindOpenAI
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(settings.Provider{})); diff != "" || s.Default() != tc.first {
				t.Error(s.Default(), diff)
			}
		})
	}
	var s settings.Worker
	check(t, settings.Load(&s, append(file, "OPENAI_API_KEY=sk-123456", "OPENAI_LITE_BASE_URL=http://l/v1")), "OPENAI_LITE_MODEL is missing")
}
