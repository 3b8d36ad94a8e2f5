// Package search is the tool with which a model searches the web, through the HTTP API of a provider that the operator has an account
// with: Brave Search or Tavily. It calls the provider alone, never a page that is found, and is off without a credential.
package search

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/outbound"
)

//go:embed web_search.md
var description string

type searchArgs struct {
	Query     string `json:"query"               jsonschema:"What to search for: at most 400 characters and 50 words"`
	Count     int    `json:"count,omitempty"     jsonschema:"How many results at most: 1 to 20; 5 by default"`
	Freshness string `json:"freshness,omitempty" jsonschema:"Only pages of the last day, week, month or year"`
}

// Limits of a search and of its answer.
const (
	maxQuery      = 400 // characters, at Brave
	maxWords      = 50  // at Brave
	defaultCount  = 5
	maxCount      = 20
	maxTitle      = 300 // bytes
	maxSnippet    = 2000
	maxAddress    = 2000
	maxBody       = 2 << 20 // of the provider's answer
	maxToldReason = 300
)

// result is one page that was found, whatever the provider calls its fields.
type result struct{ title, url, snippet string }

// Tools are web_search. Errors are *messages.FieldError about the configuration.
func Tools(cfg Config, credentials *credential.Store) ([]tools.Tool, error) {
	s, err := newSearcher(cfg, credentials)
	if err != nil {
		return nil, err
	}
	schema, err := jsonschema.For[searchArgs](nil)
	if err != nil {
		return nil, err
	}
	schema.Properties["freshness"].Enum = []any{"day", "week", "month", "year"}
	least, most := 1.0, float64(maxCount)
	schema.Properties["count"].Minimum, schema.Properties["count"].Maximum = &least, &most
	written, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	t, err := tools.Func(messages.ToolSpec{Name: "web_search", Effect: messages.EffectRead, Description: description, InputSchema: written}, s.search)
	if err != nil {
		return nil, err
	}
	return []tools.Tool{retried{t, time.Duration(s.cfg.Timeout)}}, nil
}

// retried is the tool, whose calls are made again after a transient failure.
type retried struct {
	tools.Tool

	timeout time.Duration
}

func (t retried) Timeout() time.Duration { return t.timeout }

func (t retried) Retry() tools.Retry {
	return tools.Retry{Retries: 3, First: time.Second, Most: 5 * time.Second}
}

var (
	_ tools.Timeouter = retried{}
	_ tools.Retrier   = retried{}
)

// searcher asks one provider. Safe for concurrent use.
type searcher struct {
	cfg         Config
	provider    provider
	credentials *credential.Store
	client      *outbound.Client
}

func (s *searcher) search(ctx context.Context, c tools.Call, in searchArgs) (tools.Result, error) {
	in.Query = strings.TrimSpace(in.Query)
	in.Count = cmp.Or(in.Count, defaultCount)
	if in.Query == "" || utf8.RuneCountInString(in.Query) > maxQuery || len(strings.Fields(in.Query)) > maxWords {
		r := tools.Failure(fmt.Sprintf(`Invalid arguments: "query" must have 1 to %d characters and at most %d words.`, maxQuery, maxWords))
		r.Code = messages.CodeInvalidInput
		return r, nil
	}
	req, err := s.provider.request(ctx, s.cfg.Endpoint, in)
	if err != nil {
		return tools.Result{}, fmt.Errorf("make request: %w", err)
	}
	if reason := s.refuses(&c, req); reason != "" {
		r := tools.Failure("Refused: " + reason + ".")
		r.Code = messages.CodePolicy
		return r, nil
	}
	req.GetBody = nil // whether it is sent again is decided elsewhere
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", s.cfg.UserAgent)
	if err := s.credentials.Add(s.cfg.Credential, req); err != nil {
		return tools.Result{}, fmt.Errorf("add credential: %w", err) // it was added at the start
	}
	resp, err := s.client.Do(req)
	if err != nil {
		e, ok := errors.AsType[*outbound.Error](err)
		if !ok {
			return tools.Result{}, err
		}
		r := tools.Failure("The search provider cannot be used: " + e.Reason + ".")
		r.Transient = e.Brief
		return r, nil
	}
	return s.answer(resp), nil
}

// refuses says why the agent's grants, or the rules of the run, do not leave a search.
func (s *searcher) refuses(c *tools.Call, req *http.Request) string {
	at, g := hosts.Endpoint(req.URL), &c.Grants
	left, err := hosts.Parse(g.Hosts)
	switch {
	case err != nil:
		return "grants.hosts of the agent cannot be read: " + err.Error()
	case g.Hosts != nil && !left.Lists(at):
		return fmt.Sprintf("the host of the search provider, %s, is not in the agent's grants", at)
	case !messages.Leaves(g.Credentials, s.cfg.Credential):
		return fmt.Sprintf("the credential of the search provider, %q, is not in the agent's grants", s.cfg.Credential)
	case c.Reach == nil:
		return ""
	}
	if err := c.Reach(at); err != nil {
		return err.Error()
	}
	return ""
}

// answer is the Result of a provider's response.
func (s *searcher) answer(resp *outbound.Response) tools.Result {
	meta := map[string]any{"provider": s.cfg.Provider, "status": resp.Status}
	body := s.credentials.Redact(s.cfg.Credential, resp.Body)
	if resp.Status != http.StatusOK {
		r := tools.Failure(fmt.Sprintf("The search provider answered %d: %s.", resp.Status, told(s.provider.reason(body), maxToldReason)))
		r.Meta = meta
		r.Transient = resp.Status == http.StatusTooManyRequests || resp.Status >= http.StatusInternalServerError
		r.RetryAfter = s.provider.retryAfter(resp.Header)
		return r
	}
	found, err := s.provider.results(body)
	if err != nil || resp.Truncated {
		r := tools.Failure("The answer of the search provider cannot be read.")
		r.Meta = meta
		return r
	}
	var out strings.Builder
	n := 0
	for _, f := range found[:min(len(found), maxCount)] {
		if f.url == "" {
			continue
		}
		n++
		fmt.Fprintf(&out, "%d. %s\n   %s\n   %s\n", n, told(f.title, maxTitle), told(f.url, maxAddress), told(f.snippet, maxSnippet))
	}
	meta["results"] = n
	if n == 0 {
		out.WriteString("Nothing was found.")
	}
	r := tools.Text(strings.TrimSuffix(out.String(), "\n"))
	r.Meta = meta
	return r
}

// told is a text of a provider on one line, so that none can look like a result of its own.
func told(s string, most int) string {
	s = strings.Join(strings.Fields(tools.Plain(s)), " ")
	return strict.Clip(cmp.Or(s, "(no text)"), most)
}

// seconds reads the first number of a header.
func seconds(v string) time.Duration {
	first, _, _ := strings.Cut(v, ",")
	n, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, 24*60*60)) * time.Second
}
