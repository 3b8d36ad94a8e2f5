package search

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// tavily is the search of Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search.
func tavily() provider {
	return provider{
		endpoint: "https://api.tavily.com/search", header: "Authorization",
		request: tavilyRequest, results: tavilyResults, reason: tavilyReason,
		retryAfter: func(h http.Header) time.Duration { return seconds(h.Get("Retry-After")) },
	}
}

func tavilyRequest(ctx context.Context, endpoint string, in searchArgs) (*http.Request, error) {
	body, err := json.Marshal(struct {
		Query string `json:"query"`
		Depth string `json:"search_depth"`
		Count int    `json:"max_results"`
		Range string `json:"time_range,omitempty"`
	}{in.Query, "basic", in.Count, in.Freshness})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

func tavilyResults(body []byte) ([]result, error) {
	var answer struct {
		Results []struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	var out []result
	for _, r := range answer.Results {
		out = append(out, result{r.Title, r.URL, r.Content})
	}
	return out, nil
}

// tavilyReason reads {"detail":{"error":"…"}}, and {"detail":"…"} of a request that is malformed.
func tavilyReason(body []byte) string {
	var answer struct {
		Detail json.RawMessage `json:"detail"`
	}
	var text string
	var detail struct {
		Error string `json:"error"`
	}
	switch {
	case json.Unmarshal(body, &answer) != nil:
		return ""
	case json.Unmarshal(answer.Detail, &text) == nil:
		return text
	case json.Unmarshal(answer.Detail, &detail) == nil:
		return detail.Error
	default:
		return ""
	}
}
