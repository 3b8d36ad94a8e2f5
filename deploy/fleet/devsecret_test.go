//go:build unix

package fleet_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

// spellings are ways in which a model may write a value.
func spellings(value string) map[string]string {
	var percent, units, twice strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&percent, "%%%02x", value[i])
		fmt.Fprintf(&units, `\u%04x`, value[i])
		fmt.Fprintf(&twice, `\\u%04x`, value[i])
	}
	quoted, _ := json.Marshal(value) // a string always encodes
	return map[string]string{
		"plain": value, "URL": url.QueryEscape(value), "JSON": string(quoted[1 : len(quoted)-1]), "percent": percent.String(),
		"units": units.String(), "units in JSON": twice.String(),
	}
}

// In `longshore dev` one process has the secrets of dispatcher and worker. What a model says of any of them, wherever it
// may say something and however it is written, is stored nowhere.
func TestSecretsOfDevStayInside(t *testing.T) {
	t.Parallel()
	mark := func(name string) string { return name + `/"x"+` + rand.Text()[:12] }
	webhook, old, hook, token, key := mark("webhook"), mark("old-webhook"), mark("hook"), mark("otlp"), "sk-planted-"+rand.Text()[:12]
	all := []string{webhook, old, hook, token, key}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct {
				Role string `json:"role"`
			} `json:"messages"`
		}
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(raw, &asked)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		type object = map[string]any
		var text strings.Builder
		var calls []object
		for i, value := range all {
			for name, said := range spellings(value) {
				fmt.Fprintf(&text, "%d %s %s\n", i, name, said)
				args, _ := json.Marshal(map[string]string{"filePath": "gone-" + said})
				function := object{"name": "read_file", "arguments": string(args)}
				if name == "plain" {
					function["name"] = said
				}
				calls = append(calls, object{"index": len(calls), "id": said, "type": "function", "function": function})
			}
		}
		delta, finish := object{"role": "assistant", "content": text.String()}, "stop"
		if len(asked.Messages) < 4 { // at first
			delta["tool_calls"], finish = calls, "tool_calls"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, choice := range []object{{"index": 0, "delta": delta}, {"index": 0, "delta": object{}, "finish_reason": finish}} {
			chunk, _ := json.Marshal(object{"id": "a", "model": "m", "choices": []object{choice}})
			fmt.Fprintf(w, "data: %s\n\n", chunk)
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	w := &town{t: t, data: t.TempDir()}
	ready := filepath.Join(t.TempDir(), "ready.json")
	w.dev = spawn(t, "dev", []string{
		"OPENAI_BASE_URL=" + model.URL, "OPENAI_API_KEY=" + key, "OPENAI_MODEL=m", "LONGSHORE_LOG_LEVEL=debug",
		"LONGSHORE_WEBHOOK_SECRET=" + webhook, "LONGSHORE_WEBHOOK_SECRET_OLD=" + old, "LONGSHORE_HOOK_SECRET=" + hook,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS=authorization=" + url.PathEscape(token),
	}, binary, "dev", "--data", w.data, "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0", "--ready-file", ready)
	w.dev.line("longshore is ready")
	raw, err := os.ReadFile(ready)
	if err != nil {
		t.Fatal(err)
	}
	var at struct {
		NATS  string `json:"nats"`
		Redis string `json:"redis"`
	}
	if err := json.Unmarshal(raw, &at); err != nil {
		t.Fatal(err)
	}
	w.nats, w.redis = at.NATS, at.Redis
	w.connect()
	run := w.submit("say them")
	if r := w.watch(run).end(); r.Status != messages.StatusCompleted || !strings.Contains(fmt.Sprint(r.Result), "[redacted]") || len(r.Actions) == 0 {
		t.Errorf("the model's words are not in the result: %+v", r)
	}
	redis := (&store{url: w.redis}).client(t)
	keys, err := redis.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range all {
		planted := newSecret(value)
		for name, form := range spellings(value) {
			planted.forms["its "+name] = []byte(form)
		}
		if n := planted.streams(t, w); n < 10 {
			t.Errorf("%d messages in all streams: nothing was looked through", n)
		}
		for _, k := range keys {
			fields, err := redis.HGetAll(t.Context(), k).Result()
			if err != nil {
				t.Errorf("Redis key %s: %v", k, err)
			}
			planted.absent(t, "Redis key "+k, []byte(fmt.Sprint(k, fields)))
		}
	}
	w.dev.signal(syscall.SIGTERM)
	if code := w.dev.wait(); code != 0 {
		t.Errorf("dev ended with %d", code)
	}
	for _, value := range all {
		planted := newSecret(value)
		for name, form := range spellings(value) {
			planted.forms["its "+name] = []byte(form)
		}
		planted.absent(t, "the log", []byte(strings.Join(w.dev.log(), "\n")))
		if n := planted.files(t, w.data); n < 10 { // the streams, the index, workspaces
			t.Errorf("%d files in the store: nothing was looked through", n)
		}
	}
}
