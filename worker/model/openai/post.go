package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/longshore-run/longshore/worker/model"
)

// post is the HTTP request of a call.
func (p *Provider) post(ctx context.Context, body *api.ChatCompletionRequest, e *edit) (*http.Request, error) {
	if err := api.NewReasoningValidator().Validate(*body); err != nil { // what OpenAI is known to refuse
		unsent := &model.Error{Class: model.InvalidRequest, Detail: err.Error()}
		if errors.Is(err, api.ErrReasoningToolsRequireResponses) {
			unsent.Hint = "choose a model that takes tools over chat completions"
		}
		return nil, unsent
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, refused("write request: %v", err)
	}
	if raw, err = patch(raw, e); err != nil {
		return nil, refused("%v", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address(body.Model), bytes.NewReader(raw))
	if err != nil {
		return nil, refused("%v", err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "text/event-stream", "Cache-Control": "no-cache", "Connection": "keep-alive",
		"User-Agent": "longshore", "OpenAI-Organization": p.config.Organization,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	switch {
	case p.config.NoAuth:
	case p.config.Flavour == Azure:
		req.Header.Set("Api-Key", p.config.APIKey)
	default:
		req.Header.Set("Authorization", "Bearer "+p.config.APIKey)
	}
	return req, nil
}

// address is where a model is called. Azure has its name in the path: see deployable.
func (p *Provider) address(name string) string {
	base := strings.TrimRight(p.config.BaseURL, "/")
	if p.config.Flavour != Azure {
		return base + "/chat/completions"
	}
	return base + "/openai/deployments/" + name + "/chat/completions?api-version=" + url.QueryEscape(p.config.APIVersion)
}
