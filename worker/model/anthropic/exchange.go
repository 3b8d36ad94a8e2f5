package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// exchange is one call. It is used by one goroutine.
type exchange struct {
	*httpstream.Call

	provider *Provider
	names    names
}

// version of the API that is spoken.
const version = "2023-06-01"

// send makes the request. Everything but a 2xx is an *model.Error, as is a request without an answer.
func (x *exchange) send(ctx context.Context, b *body) error {
	raw, err := json.Marshal(b)
	if err != nil {
		return invalid("write request: %v", err)
	}
	c := &x.provider.config
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.BaseURL, "/")+"/v1/messages", bytes.NewReader(raw))
	if err != nil {
		return invalid("%v", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "longshore")
	req.Header.Set("Anthropic-Version", version)
	if !c.NoAuth {
		req.Header.Set("X-Api-Key", c.APIKey)
	}
	err = x.Do(req)
	if no, ok := errors.AsType[*httpstream.RefusalError](err); ok {
		return x.refusal(no)
	}
	return err
}
