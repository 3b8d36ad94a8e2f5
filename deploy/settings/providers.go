package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
)

// Bounds of a providers file.
const (
	maxProvidersFile = 1 << 20 // bytes
	maxProviders     = 64
	maxModelsOf      = 256
	maxModelName     = 256           // bytes
	maxKeyFile       = 16 << 10      // bytes
	maxTokens        = 1_000_000_000 // and any other number
	providersEnv     = "LONGSHORE_PROVIDERS"
)

// ProvidersFile is the file that LONGSHORE_PROVIDERS names.
type ProvidersFile struct {
	Default   string     `json:"default,omitempty"` // the provider of agents that name none
	Providers []Provider `json:"providers"`
}

// ParseProviders reads a providers file, strictly: an unknown field is an error that names it. Keys are not looked up.
// The error is one line; a mistake in the content is a *messages.FieldError.
func ParseProviders(data []byte) (*ProvidersFile, error) {
	if len(data) > maxProvidersFile {
		return nil, fmt.Errorf("is larger than %d bytes", maxProvidersFile)
	}
	doc, err := document.Only(data, maxProvidersFile)
	if errors.Is(err, document.ErrEmpty) {
		return nil, errors.New("is empty: list at least one provider under \"providers\"")
	} else if err != nil {
		return nil, errors.New(oneLine(err.Error()))
	}
	var f ProvidersFile
	if err := f.read(doc.JSON); err != nil {
		return nil, doc.Locate(err)
	}
	return &f, nil
}

func (f *ProvidersFile) read(asJSON []byte) error {
	if err := strict.Decode(asJSON, f); err != nil {
		return err
	}
	if len(f.Providers) == 0 {
		return &messages.FieldError{Field: "providers", Reason: "is empty: list at least one, with name and kind"}
	}
	if len(f.Providers) > maxProviders {
		return &messages.FieldError{Field: "providers", Reason: fmt.Sprintf("more than %d", maxProviders)}
	}
	for i := range f.Providers {
		p := &f.Providers[i]
		p.source = fmt.Sprintf("providers[%d]", i)
		if err := p.check(); err != nil {
			return err
		}
		if j := slices.IndexFunc(f.Providers, func(o Provider) bool { return o.Name == p.Name }); j != i {
			return p.wrong("name", "%q is taken by providers[%d]: names must differ", p.Name, j)
		}
	}
	return nil
}

// oneLine is text as an error may show it.
func oneLine(s string) string { return strict.Clip(strings.Join(strings.Fields(s), " "), 300) }

// wrong is an error about a field of the provider.
func (p *Provider) wrong(field, format string, args ...any) error {
	return &messages.FieldError{Field: p.source + "." + field, Reason: fmt.Sprintf(format, args...)}
}

func (p *Provider) check() error {
	if !strict.ValidToken(p.Name) {
		return p.wrong("name", "must be 1 to 64 characters of A-Z a-z 0-9 _ -")
	}
	switch p.Kind {
	case KindOpenAI, KindAnthropic:
	case KindScripted:
		return p.checkScripted()
	case "":
		return p.wrong("kind", "is missing: openai, anthropic or scripted")
	default:
		return p.wrong("kind", "%q is not openai, anthropic or scripted", strict.Clip(p.Kind, 64))
	}
	if err := p.checkAuth(); err != nil {
		return err
	}
	switch {
	case p.Script != "":
		return p.wrong("script", "belongs to kind scripted only")
	case p.Kind != KindOpenAI && p.Flavour != "":
		return p.wrong("flavour", "belongs to kind openai only")
	case p.Kind != KindOpenAI && p.APIVersion != "":
		return p.wrong("apiVersion", "belongs to kind openai only")
	case p.Kind != KindOpenAI && p.Organization != "":
		return p.wrong("organization", "belongs to kind openai only")
	case p.BaseURL != "" && !isHTTP(p.BaseURL):
		return p.wrong("baseURL", "must be an address such as https://host/v1, without a password")
	case p.NoAuth() && p.BaseURL == "":
		return p.wrong("baseURL", "is missing: an endpoint with auth: none has an address of its own")
	case len(p.Model) > maxModelName:
		return p.wrong("model", "larger than %d bytes", maxModelName)
	}
	return p.checkAbilities()
}

func (p *Provider) checkScripted() error {
	for _, f := range []struct{ name, value string }{
		{"baseURL", p.BaseURL},
		{"key", p.Key},
		{"keyEnv", p.KeyEnv},
		{"keyFile", p.KeyFile},
		{"auth", p.Auth},
		{"organization", p.Organization},
		{"flavour", p.Flavour},
		{"apiVersion", p.APIVersion},
		{"model", p.Model},
	} {
		if f.value != "" {
			return p.wrong(f.name, "does not belong to kind scripted")
		}
	}
	if p.Script == "" {
		return p.wrong("script", "is missing: the file that the model plays")
	}
	return p.checkAbilities()
}

func (p *Provider) checkAuth() error {
	given := ""
	for _, f := range []struct{ name, value string }{{"key", p.Key}, {"keyEnv", p.KeyEnv}, {"keyFile", p.KeyFile}} {
		switch {
		case f.value == "":
		case given != "":
			return p.wrong(f.name, "%s is set too: give the key in one way", given)
		case p.Auth != "":
			return p.wrong(f.name, "is set together with auth: leave one of them out")
		default:
			given = f.name
		}
	}
	switch {
	case p.Auth != "" && p.Auth != authNone:
		return p.wrong("auth", "must be none, or left out when there is a key")
	case given == "" && p.Auth == "":
		return p.wrong("keyEnv", "is missing: name the variable that holds the key, or set keyFile, or auth: none")
	}
	return nil
}

func isHTTP(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

func (p *Provider) checkAbilities() error {
	if len(p.Models) > maxModelsOf {
		return p.wrong("models", "more than %d", maxModelsOf)
	}
	if err := p.checkNumbers("", p.Ability); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		if name == "" || len(name) > maxModelName {
			return p.wrong("models", "a name must have 1 to %d bytes", maxModelName)
		}
		if err := p.checkNumbers("models."+oneLine(name)+".", p.Models[name]); err != nil {
			return err
		}
	}
	for _, r := range []struct {
		at string
		Rate
	}{{"limits.", p.Limits.Rate}, {"limits.tenant.", p.Limits.Tenant}} {
		if err := errors.Join(
			p.checkNumber(r.at+"requestsPerMinute", r.RequestsPerMinute), p.checkNumber(r.at+"tokensPerMinute", r.TokensPerMinute),
			p.checkNumber(r.at+"inFlight", r.InFlight),
		); err != nil {
			return firstField(err)
		}
	}
	return nil
}

func (p *Provider) checkNumbers(at string, a Ability) error {
	if err := errors.Join(p.checkNumber(at+"contextWindow", a.ContextWindow), p.checkNumber(at+"maxOutput", a.MaxOutput)); err != nil {
		return firstField(err)
	}
	return nil
}

func (p *Provider) checkNumber(field string, n int) error {
	if n < 0 || n > maxTokens {
		return p.wrong(field, "must be 0 to %d", maxTokens)
	}
	return nil
}

func firstField(err error) error {
	fe, _ := errors.AsType[*messages.FieldError](err) // Join finds the first
	return fe
}

// loadProviders reads the file and the keys that it names. The error is one line that begins with the variable.
func loadProviders(file string, env map[string]string) (*ProvidersFile, error) {
	data, err := document.Read(file, maxProvidersFile)
	if err != nil {
		return nil, Errorf("%s: %s", providersEnv, oneLine(err.Error()))
	}
	f, err := ParseProviders(data)
	if err != nil {
		return nil, Errorf("%s: %s: %s", providersEnv, file, oneLine(err.Error()))
	}
	for i := range f.Providers {
		p := &f.Providers[i]
		if err := p.load(filepath.Dir(file), env); err != nil {
			return nil, Errorf("%s: %s: %s", providersEnv, file, oneLine(err.Error()))
		}
		p.source = fmt.Sprintf("%s: %s: %s", providersEnv, file, p.source)
	}
	return f, nil
}

// load finds the key, and makes the names of files good for the whole process.
func (p *Provider) load(dir string, env map[string]string) error {
	at := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, name)
	}
	p.Script, p.KeyFile = at(p.Script), at(p.KeyFile)
	field := "key"
	switch {
	case p.KeyEnv != "":
		if p.Key = env[p.KeyEnv]; p.Key == "" {
			return p.wrong("keyEnv", "%s is not set: set it to the key of this provider", shownVariable(p.KeyEnv, "keyEnv"))
		}
		field = "keyEnv"
	case p.KeyFile != "":
		data, err := document.Read(p.KeyFile, maxKeyFile)
		if err != nil {
			return p.wrong("keyFile", "%v", err)
		}
		if p.Key = strings.TrimSpace(string(data)); p.Key == "" {
			return p.wrong("keyFile", "%s is empty: put the key into it", p.KeyFile)
		}
		field = "keyFile"
	}
	if strings.ContainsFunc(p.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return p.wrong(field, "the key holds a space, a line break or a character outside ASCII")
	}
	return nil
}
