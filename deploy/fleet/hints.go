package fleet

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/worker/model"
)

// hinted is a provider of the file. The hints of the leaves name the short variables; these name what counts here.
type hinted struct {
	model.Provider

	own *strings.Replacer
}

// hintsOf wraps a provider of the file; one of the short variables stays as it is.
func hintsOf(s *settings.Provider, p model.Provider) model.Provider {
	prefix, ok := map[string]string{settings.KindOpenAI: "OPENAI", settings.KindAnthropic: "ANTHROPIC"}[s.Kind]
	if !ok || !s.FromFile() {
		return p
	}
	key, of := "the key of provider "+s.Name, " of provider "+s.Name
	switch {
	case s.KeyEnv != "":
		key = s.KeyEnv
	case s.KeyFile != "":
		key = "the file " + s.KeyFile
	}
	return hinted{p, strings.NewReplacer(
		prefix+"_API_KEY", key, prefix+"_BASE_URL", "provider "+s.Name,
		prefix+"_MODEL, or the model of the provider or agent", "the model"+of+" or of the agent", prefix+"_MODEL", "the model"+of,
	)}
}

// Stream implements model.Provider.
func (h hinted) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range h.Provider.Stream(ctx, r) {
			if failed, ok := errors.AsType[*model.Error](err); ok {
				named := *failed
				named.Hint = h.own.Replace(named.Hint)
				err = &named
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Close is the leaf's.
func (h hinted) Close() {
	if leaf, ok := h.Provider.(interface{ Close() }); ok {
		leaf.Close()
	}
}
