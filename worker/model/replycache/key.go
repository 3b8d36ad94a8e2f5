package replycache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// question is everything in a request that affects its reply, and the tenant: tenants never share. What is added to
// model.Request and sent to a provider belongs here.
type question struct {
	Tenant      string              `json:"tenant"`
	Provider    string              `json:"provider"`
	Model       string              `json:"model"`
	Messages    []messages.Message  `json:"messages"`
	Tools       []messages.ToolSpec `json:"tools"`
	MaxTokens   int                 `json:"maxTokens"`
	Temperature float64             `json:"temperature"`
	Format      *model.Format       `json:"format"`
	Echo        bool                `json:"echo"`
}

// hash names a question: the SHA-256 of its JSON.
func hash(provider string, r *model.Request) (string, error) {
	data, err := json.Marshal(question{ //nolint:musttag // only hashed
		r.Tenant, provider, r.Model, r.Messages, r.Tools, r.MaxTokens, *r.Temperature, r.Format, r.Echo,
	})
	if err != nil {
		return "", fmt.Errorf("hash request: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

func (c *Cache) key(tenant, hash string) string { return keyOf(c.config.Prefix, tenant, hash) }

func keyOf(prefix, tenant, hash string) string {
	return prefix + ":reply:" + url.QueryEscape(tenant) + ":" + hash
}

// RepliesOf is the pattern of the keys of all replies of a tenant under the default prefix.
func RepliesOf(tenant string) string { return keyOf(defaultPrefix, tenant, "*") }
