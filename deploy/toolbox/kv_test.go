package toolbox_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/tools"
)

// The examples of docs/tools/kv.md do what the page says, on the worker's Redis and on that of a credential.
func TestPageOfKV(t *testing.T) {
	files, calls := examples(t, "kv.md", "yaml"), examples(t, "kv.md", "text")
	if len(files) != 2 || len(calls) != 1 {
		t.Fatalf("the page has %d files and %d plays", len(files), len(calls))
	}
	asJSON, err := document.Only([]byte(files[1]), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var agent struct {
		Spec messages.Definition `json:"spec"`
	}
	if err := json.Unmarshal(asJSON, &agent); err != nil {
		t.Fatal(err)
	}
	redis := embeddedtest.Start(t, embedded.Config{NATSAddr: embedded.NoListen}).RedisURL
	own := strings.Replace(files[0], "  kv:\n", "  credentials:\n    store: {env: STORE_URL}\n  kv:\n    redis: store\n", 1)
	for name, set := range map[string]*tools.Set{
		"worker": opened(t, files[0], "REDIS_URL="+redis), "credential": opened(t, own, "STORE_URL="+redis),
	} {
		t.Run(name, func(t *testing.T) {
			specs, err := set.Specs(agent.Spec.Tools)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(calls[0] + "\n") {
				tool, args, _ := strings.Cut(strings.TrimSpace(line), " ")
				if tool == ">" || tool == "!" {
					continue
				}
				raw, refusal := set.Check(messages.ToolCall{Name: tool, Arguments: args}, specs)
				if refusal != nil {
					t.Fatalf("%s: %s", line, refusal.Content[0].Text)
				}
				r, err := set.Call(t.Context(), tool, tools.Call{
					Run: messages.Ref{Tenant: "t", Run: "r"}, Session: "of-" + name, Grants: agent.Spec.GrantOf(), Key: strconv.Itoa(got.Len()), Arguments: raw,
				})
				if err != nil {
					t.Fatal(err)
				}
				mark := "> "
				if r.IsError {
					mark = "! "
				}
				got.WriteString(line)
				for l := range strings.SplitSeq(r.Content[0].Text, "\n") {
					got.WriteString(mark + l + "\n")
				}
			}
			if diff := cmp.Diff(calls[0]+"\n", got.String()); diff != "" {
				t.Errorf("example (-page +tools):\n%s", diff)
			}
		})
	}
}

// A part that cannot be opened ends the start with the field and without the secret.
func TestPartsOfKVThatAreWrong(t *testing.T) {
	for part, want := range map[string]string{
		"  kv: {}\n":               "spec.kv.redis: is missing, and REDIS_URL is none: name the credential that holds the URL of a Redis",
		"  kv: {redis: nowhere}\n": `spec.kv.redis: "nowhere": there is no such credential`,
		"  kv: {redis: store}\n  credentials: {store: {env: STORE_URL}}\n": "spec.kv.redis: redis url: want redis://",
		"  kv: {keys: -1}\n": "spec.kv.keys: must be 1 to 10000",
		"  kv: {url: x}\n":   "spec.kv.url: ",
	} {
		file := filepath.Join(t.TempDir(), "tools.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: longshore.run/v1\nkind: Tools\nspec:\n"+part), 0o600); err != nil {
			t.Fatal(err)
		}
		s := new(settings.Worker)
		if err := settings.Load(s, []string{"NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_SCRIPT=x.yaml", "LONGSHORE_TOOLS=" + file, "STORE_URL=http://u:s3cret-s3cret@h"}); err != nil {
			t.Fatal(err)
		}
		_, err := toolbox.Open(t.Context(), &s.Tools, toolbox.Needs{Log: slog.New(slog.DiscardHandler), RedisURL: s.RedisURL})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %s", part, err, want)
		}
	}
}
