package search

import (
	"context"
	"net/http"
	"time"
)

// provider is the wire format of a provider's API.
type provider struct {
	endpoint string
	header   string // that proves who is asking
	request  func(ctx context.Context, endpoint string, in searchArgs) (*http.Request, error)
	results  func(body []byte) ([]result, error)
	reason   func(body []byte) string // of an error, in the provider's words; empty if there are none

	retryAfter func(http.Header) time.Duration
}

func providers() map[string]provider {
	return map[string]provider{"brave": brave(), "tavily": tavily()}
}
