package fleet_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// A value that a prompt puts through redact reaches neither the model of a run nor who looks at the prompt with a secret
// of the fleet in it.
func TestPromptsRedact(t *testing.T) {
	t.Parallel()
	key := "sk-planted-" + rand.Text()[:12]
	asked := make(chan string, 8)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked <- string(body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"a","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"done"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Abrupt: true, Log: testLog(t, "dev"), Dev: settings.Dev{Runs: settings.Runs{Slots: 2, MaxAttempts: 5, ModelTimeout: time.Minute}, Models: settings.Models{OpenAIURL: model.URL, OpenAIKey: key, OpenAIModel: "m"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vars, err := json.Marshal(map[string]string{"log": "Authorization: Bearer " + key})
	if err != nil {
		t.Fatal(err)
	}
	const want = "Explain: Authorization: Bearer [redacted]"
	for engine, text := range map[string]string{messages.EngineLiquid: "Explain: {{ log | redact }}", messages.EngineHandlebars: "Explain: {{redact log}}"} {
		if _, err := client.Prompts().Put(t.Context(), messages.Prompt{ID: engine, Engine: engine, Text: text}, nil); err != nil {
			t.Fatal(err)
		}
		if shown, err := client.Prompts().Render(t.Context(), control.PromptRender{ID: engine, Vars: vars}); err != nil || shown.Text != want {
			t.Errorf("%s: rendered as %q, %v", engine, shown.Text, err)
		}
		prompt := &messages.PromptRef{ID: engine, Vars: vars}
		var field *messages.FieldError
		if _, err := client.Agents().Apply(t.Context(), messages.Definition{Name: engine, Prompt: prompt}, "", nil); !errors.As(err, &field) || field.Field != "agent.prompt.vars.log" {
			t.Errorf("%s: an agent whose variables hold a secret: %v", engine, err)
		}
		prompt.Vars = nil
		if _, err := client.Agents().Apply(t.Context(), messages.Definition{Name: engine, Prompt: prompt}, "", nil); err != nil {
			t.Fatal(err)
		}
		id, err := client.Submit(t.Context(), messages.Task{Agent: engine, Input: messages.TextInput("go"), Context: vars})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := client.Wait(t.Context(), messages.Ref{Tenant: messages.DefaultTenant, Run: id}); err != nil || r.Status != messages.StatusCompleted {
			t.Fatalf("%s: %+v, %v", engine, r, err)
		}
		if said := <-asked; !strings.Contains(said, want) || strings.Contains(said, key) {
			t.Errorf("%s: the model was told %s", engine, said)
		}
	}
}
