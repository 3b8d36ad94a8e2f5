package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// Flavour names a dialect whose requests differ from what most servers take. Replies need none: they are all read by
// the same rules.
type Flavour string

// Flavours. NVIDIA, xAI, Gemini, vLLM, Ollama, llama.cpp and most others are Compatible.
const (
	OpenAI     Flavour = "openai"
	Azure      Flavour = "azure"
	OpenRouter Flavour = "openrouter"
	Groq       Flavour = "groq"
	Mistral    Flavour = "mistral"
	DeepSeek   Flavour = "deepseek"
	Compatible Flavour = "compatible"
)

// Flavours are all of them.
func Flavours() []Flavour {
	return []Flavour{OpenAI, Azure, OpenRouter, Groq, Mistral, DeepSeek, Compatible}
}

// flavourOf guesses by the host.
func flavourOf(baseURL string) Flavour {
	u, err := url.Parse(baseURL)
	if err != nil {
		return Compatible
	}
	host := strings.ToLower(u.Hostname())
	switch {
	case host == "api.openai.com":
		return OpenAI
	case strings.HasSuffix(host, ".openai.azure.com") && !strings.Contains(u.Path, "/v1"): // Azure's /openai/v1 is as OpenAI's
		return Azure
	case host == "openrouter.ai":
		return OpenRouter
	case host == "api.groq.com":
		return Groq
	case host == "api.mistral.ai":
		return Mistral
	case host == "api.deepseek.com":
		return DeepSeek
	}
	return Compatible
}

func (f Flavour) check() error {
	if slices.Contains(Flavours(), f) {
		return nil
	}
	return &messages.FieldError{Field: "flavour", Reason: fmt.Sprintf("%q is not known; known: %v", string(f), Flavours())}
}

// capabilities is what models behind the flavour usually can do. Whether one sees images or reads files cannot be guessed for a
// server that takes any model.
func (f Flavour) capabilities() model.Capabilities {
	c := model.Capabilities{Tools: true, Streaming: true, JSONSchema: true, JSONMode: true, Reasoning: true}
	c.Images = f == OpenAI || f == Azure || f == OpenRouter || f == Mistral
	c.Files = f == OpenAI || f == OpenRouter
	c.JSONSchema = f != Groq && f != DeepSeek // Groq has it for a few models only
	return c
}

// refusesOldLimit reports whether max_completion_tokens is the name that all models of the flavour take.
func (f Flavour) refusesOldLimit() bool { return f == OpenAI || f == Azure }

// countsUnasked reports whether usage comes by itself, and asking for it is a mistake to strict servers.
func (f Flavour) countsUnasked() bool { return f == Mistral }

// imagesInTools reports whether results of tools may hold images. The others want them in a message of the user, which
// Mistral in turn refuses after a result.
func (f Flavour) imagesInTools() bool { return f == Mistral }

// formatWithTools reports whether a format may be asked for together with tools.
func (f Flavour) formatWithTools() bool { return f != Groq }

// echoes reports whether the flavour takes reasoning back.
func (f Flavour) echoes() bool { return f != OpenAI && f != Azure }

// Rules of call ids: Mistral's, and the longest that OpenAI takes.
const (
	mistralID = 9
	maxSentID = 40
)

// callID makes an id one that the flavour takes. The same id always becomes the same.
func (f Flavour) callID(id string) string {
	sum := sha256.Sum256([]byte(id))
	switch {
	case f == Mistral && (len(id) != mistralID || strings.ContainsFunc(id, notAlphanumeric)):
		return hex.EncodeToString(sum[:])[:mistralID]
	case f != Mistral && len(id) > maxSentID:
		return "call_" + hex.EncodeToString(sum[:16])
	}
	return id
}

func notAlphanumeric(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}
