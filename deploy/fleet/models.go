package fleet

import (
	"fmt"
	"os"
	"time"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/openai"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// Names of the providers, as agents use them.
const (
	providerOpenAI   = "openai"
	providerScripted = "scripted"
)

// models makes the providers that the settings name, behind the guard. When they name none, the script is played, unless it is nil.
func models(s settings.Models, silence time.Duration, script *scripted.Script, g *guard) (model.Provider, error) {
	providers := map[string]model.Provider{}
	first := ""
	if s.OpenAIKey != "" {
		p, err := openai.New(openai.Config{BaseURL: s.OpenAIURL, APIKey: s.OpenAIKey, Model: s.OpenAIModel, IdleTimeout: silence})
		if err != nil {
			return nil, settings.Errorf("OPENAI_BASE_URL, OPENAI_API_KEY or OPENAI_MODEL: %v", err)
		}
		providers[providerOpenAI], first = p, providerOpenAI
	}
	if s.Script != "" {
		data, err := os.ReadFile(s.Script)
		if err != nil {
			return nil, settings.Errorf("LONGSHORE_SCRIPT: %v", err)
		}
		if script, err = scripted.Parse(data); err != nil {
			return nil, settings.Errorf("LONGSHORE_SCRIPT: %s: %v", s.Script, err)
		}
	}
	if script != nil {
		providers[providerScripted] = scripted.New(script)
		if first == "" {
			first = providerScripted
		}
	}
	for name, p := range providers {
		providers[name] = g.wrap(name, p)
	}
	router, err := model.NewRouter(model.RouterConfig{Providers: providers, Default: first})
	if err != nil {
		return nil, fmt.Errorf("route models: %w", err)
	}
	return model.NewRetry(router, model.RetryConfig{}), nil
}
