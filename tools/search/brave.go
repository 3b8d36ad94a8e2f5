package search

import (
	"cmp"
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// brave is the Web Search API of Brave: https://api-dashboard.search.brave.com/api-reference/web/search/get.
func brave() provider {
	return provider{
		endpoint: "https://api.search.brave.com/res/v1/web/search", header: "X-Subscription-Token",
		request: braveRequest, results: braveResults, reason: braveReason,
		// The limits are in one header, each with its window: "1, 1419704". The first is that of a second.
		retryAfter: func(h http.Header) time.Duration {
			return seconds(cmp.Or(h.Get("Retry-After"), h.Get("X-Ratelimit-Reset")))
		},
	}
}

func braveRequest(ctx context.Context, endpoint string, in searchArgs) (*http.Request, error) {
	q := url.Values{
		"q": {in.Query}, "count": {strconv.Itoa(in.Count)}, "result_filter": {"web"}, "text_decorations": {"false"},
	}
	if in.Freshness != "" {
		q.Set("freshness", "p"+in.Freshness[:1]) // pd, pw, pm, py
	}
	return http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"?"+q.Encode(), http.NoBody)
}

func braveResults(body []byte) ([]result, error) {
	var answer struct {
		Web struct {
			Results []struct {
				Title       string `json:"title"`
				URL         string `json:"url"`
				Description string `json:"description"`
			} `json:"results"`
		} `json:"web"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	tags := regexp.MustCompile(`</?(strong|b|em|i)>`)
	plain := func(s string) string { return html.UnescapeString(tags.ReplaceAllString(s, "")) }
	var out []result
	for _, r := range answer.Web.Results {
		out = append(out, result{plain(r.Title), r.URL, plain(r.Description)})
	}
	return out, nil
}

func braveReason(body []byte) string {
	var answer struct {
		Error struct {
			Code   string `json:"code"`
			Detail string `json:"detail"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return answer.Error.Code + " " + answer.Error.Detail
}
