package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/openai"
	"github.com/longshore-run/longshore/worker/model/prices"
)

const (
	anthropicVersion = "2023-06-01"
	azureVersion     = "2024-10-21"
	tinyReply        = 16 // tokens
)

// models checks each provider, and what its models cost.
func (d *doctor) models(ctx context.Context) []Finding {
	if d.env.role != roleWorker {
		return []Finding{skip("models", "", "only workers call them")}
	}
	all := d.env.worker.Providers()
	if len(all) == 0 {
		return []Finding{skip("models", "set OPENAI_API_KEY and OPENAI_MODEL, ANTHROPIC_API_KEY and ANTHROPIC_MODEL, or LONGSHORE_PROVIDERS", "none is configured")}
	}
	found := make([][]Finding, len(all))
	var looking sync.WaitGroup
	for i := range all {
		looking.Go(func() { found[i] = d.provider(ctx, &all[i]) })
	}
	looking.Wait()
	out := slices.Concat(found...)
	for _, name := range d.env.worker.PlainKeys() {
		out = append(out, warn("model "+name, "name a variable with keyEnv, or a file with keyFile", "its key is in the file of LONGSHORE_PROVIDERS"))
	}
	return append(out, d.prices(all))
}

// provider checks one.
func (d *doctor) provider(ctx context.Context, p *settings.Provider) []Finding {
	check := "model " + p.Name
	leaf, err := fleet.Provider(p, d.timeout)
	if err != nil {
		return []Finding{fail(check, "correct "+p.Source(), "a worker would not start: %v", err)}
	}
	if c, closes := leaf.(interface{ Close() }); closes {
		defer c.Close()
	}
	if p.Kind == settings.KindScripted {
		return []Finding{ok(check, "plays %s", p.Script)}
	}
	out := []Finding{d.listed(ctx, p)}
	if d.call && out[0].Status != Fail {
		out = append(out, d.called(ctx, p, leaf))
	}
	return out
}

// listed asks for the list of models, which costs nothing.
func (d *doctor) listed(ctx context.Context, p *settings.Provider) Finding {
	check := "model " + p.Name
	ctx, cancel := d.within(ctx)
	defer cancel()
	req, at, err := listRequest(ctx, p)
	if err != nil {
		return fail(check, "correct "+p.Source(), "its address cannot be used")
	}
	client := http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would get the key
	}
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return fail(check, "check the address of "+p.Source()+", DNS, proxy and firewall", "%s: %s", at, requestFailure(err))
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fail(check, "try again, and look at the provider's status page", "%s: %s", at, requestFailure(err))
	}
	return listAnswer(p, at, resp.StatusCode, body, time.Since(began))
}

// requestFailure is why a request has no answer. The client's own text repeats the whole address.
func requestFailure(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return network(err)
}

// listRequest is for the list of models; at is its address as it may be shown.
func listRequest(ctx context.Context, p *settings.Provider) (req *http.Request, at string, err error) {
	base, path, header := cmp.Or(p.BaseURL, openai.DefaultBaseURL), "/models", "Authorization"
	query, key := "", "Bearer "+p.Key
	if p.Kind == settings.KindAnthropic {
		base, path, header, key, query = cmp.Or(p.BaseURL, anthropic.DefaultBaseURL), "/v1/models", "X-Api-Key", p.Key, "limit=1000"
	}
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil {
		return nil, "", errors.New("not an address")
	}
	azure := p.Flavour == string(openai.Azure) || p.Flavour == "" && strings.HasSuffix(u.Hostname(), ".openai.azure.com") && !strings.Contains(u.Path, "/v1")
	if azure && p.Kind == settings.KindOpenAI {
		path, header, key, query = "/openai/models", "Api-Key", p.Key, "api-version="+url.QueryEscape(cmp.Or(p.APIVersion, azureVersion))
	}
	u.Path += path
	if u.RawQuery == "" {
		u.RawQuery = query
	}
	if req, err = http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil); err != nil {
		return nil, "", errors.New("not an address")
	}
	if !p.NoAuth() {
		req.Header.Set(header, key)
	}
	if p.Kind == settings.KindAnthropic {
		req.Header.Set("Anthropic-Version", anthropicVersion)
	}
	if p.Organization != "" {
		req.Header.Set("OpenAI-Organization", p.Organization)
	}
	req.Header.Set("User-Agent", "longshore")
	return req, u.Scheme + "://" + u.Host, nil
}

// listAnswer judges the answer of a provider.
func listAnswer(p *settings.Provider, at string, status int, body []byte, took time.Duration) Finding {
	check := "model " + p.Name
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fail(check, "set a key that is valid and may use the model: "+p.Source(), "%s refuses the key (status %d)", at, status)
	case status == http.StatusTooManyRequests:
		return warn(check, "wait, or see limits and balance of the account", "%s answers, but limits the rate of requests (status 429)", at)
	case status == http.StatusPaymentRequired:
		return fail(check, "top up the account", "%s refuses: the account has no credit (status 402)", at)
	case status >= http.StatusInternalServerError:
		return fail(check, "look at the provider's status page; agents with another model use that in the meantime", "%s has a problem (status %d)", at, status)
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return warn(check, "check the path of its address; if it is right, try it with --call", "%s answers, and has no list of models (status %d): the key was not tried", at, status)
	case status != http.StatusOK:
		return warn(check, "try it with --call", "%s answers with status %d", at, status)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil || list.Data == nil {
		return warn(check, "check the path of its address", "%s answers, but not with a list of models", at)
	}
	has := slices.ContainsFunc(list.Data, func(m struct {
		ID string `json:"id"`
	},
	) bool {
		return m.ID == p.Model || strings.HasSuffix(m.ID, "/"+p.Model)
	})
	if p.Model != "" && len(list.Data) > 0 && !has {
		return warn(check, "check the name of the model, or try it with --call", "%s answers, and does not list the model %s", at, p.Model)
	}
	return ok(check, "%s lists its models in %s", at, short(took))
}

// called makes the smallest possible call.
func (d *doctor) called(ctx context.Context, p *settings.Provider, leaf model.Provider) Finding {
	check := "call of " + p.Name
	ctx, cancel := d.within(ctx)
	defer cancel()
	began := time.Now()
	r := model.Request{
		Key: "doctor", Tenant: messages.DefaultTenant, MaxTokens: tinyReply,
		Messages: []messages.Message{{Role: messages.RoleUser, Content: messages.TextContent("Say ok.")}},
	}
	for delta, err := range leaf.Stream(ctx, r) {
		if err != nil {
			return fail(check, "see what the provider says, and "+p.Source(), "%v", err)
		}
		if delta.Reply != nil {
			took := time.Since(began)
			delta.Reply.Asked = p.Model
			return ok(check, "%s replied in %s, %s", cmp.Or(delta.Reply.Model, p.Model), short(took), d.paid(delta.Reply))
		}
	}
	return fail(check, "try again", "it ended without a reply")
}

// paid is what a reply used and cost, as a worker would count it. A price file that cannot be read is another check's.
func (d *doctor) paid(r *model.Reply) string {
	used := render.Count(r.Usage.Total, "token")
	table, err := prices.Load(d.env.worker.Prices)
	if err != nil {
		return used + ", no price known"
	}
	priced := false
	for _, name := range r.PricedAs() {
		if usd, ok := table.Cost(r.Provider, name, r.Usage); ok {
			return used + ", " + messages.Money(usd)
		}
		priced = priced || table.Find(r.Provider, name) != nil
	}
	if priced {
		return used + ", cost unknown: the reply does not say how many tokens of each kind it took"
	}
	return used + ", no price known"
}

// prices warns of models of unknown cost: budgets and quotas in dollars do not count them.
func (d *doctor) prices(all []settings.Provider) Finding {
	const check = "prices"
	table, err := prices.Load(d.env.worker.Prices)
	if err != nil {
		return fail(check, "correct the file of LONGSHORE_PRICES", "%v", err)
	}
	var unknown []string
	known := 0
	for i := range all {
		p := &all[i]
		if p.Kind == settings.KindScripted || p.Model == "" {
			continue
		}
		if table.Find(p.Kind, p.Model) == nil {
			unknown = append(unknown, fmt.Sprintf("%s (%s)", p.Model, p.Name))
		} else {
			known++
		}
	}
	if len(unknown) > 0 {
		return warn(check, "give them in the file of LONGSHORE_PRICES: budgets and quotas in dollars do not count them", "unknown: %s", strings.Join(unknown, ", "))
	}
	if known == 0 {
		return ok(check, "no provider names a model that is paid for")
	}
	return ok(check, "known for all that providers name: %s", render.Count(int64(known), "model"))
}
