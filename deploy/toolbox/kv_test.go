package toolbox_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// The examples of docs/tools/kv.md do what the page says, on the worker's Redis and on that of a credential.
func TestPageOfKV(t *testing.T) {
	files, calls := examples(t, "kv.md", "yaml"), examples(t, "kv.md", "text")
	if len(files) != 2 || len(calls) != 1 {
		t.Fatalf("the page has %d files and %d plays", len(files), len(calls))
	}
	agent := definition(t, files[1])
	redis := embeddedtest.Start(t, embedded.Config{NATSAddr: embedded.NoListen}).RedisURL
	own := strings.Replace(files[0], "  kv:\n", "  credentials:\n    store: {env: STORE_URL}\n  kv:\n    redis: store\n", 1)
	for name, set := range map[string]*tools.Set{
		"worker": opened(t, files[0], "REDIS_URL="+redis), "credential": opened(t, own, "STORE_URL="+redis),
	} {
		t.Run(name, func(t *testing.T) {
			// Revisions begin with the time: those of the page are counted from the first one here.
			play, first := calls[0], firstRevision(t, set, agent, "of-"+name)
			for n := range int64(5) {
				play = strings.ReplaceAll(play, strconv.FormatInt(28594563953100+n, 10), strconv.FormatInt(first+n, 10))
			}
			played(t, set, agent, play, "of-"+name)
		})
	}
}

// firstRevision is that of a scope's first value, which is gone again.
func firstRevision(t *testing.T, set *tools.Set, agent messages.Definition, session string) (first int64) {
	t.Helper()
	ask := func(tool, args string) string {
		r, err := set.Call(t.Context(), tool, tools.Call{
			Run: messages.Ref{Tenant: "t", Run: "r"}, Session: session, Grants: agent.GrantOf(), Arguments: []byte(args),
		})
		if err != nil || r.IsError {
			t.Fatalf("%s: %+v, %v", tool, r, err)
		}
		return r.Content[0].Text
	}
	if _, err := fmt.Sscanf(ask("kv_set", `{"key":"first","value":""}`), `Kept 0 bytes under "first" with revision %d`, &first); err != nil {
		t.Fatal(err)
	}
	ask("kv_delete", `{"key":"first"}`)
	return first
}

// A part that cannot be opened ends the start with the field and without the secret.
func TestPartsOfKVThatAreWrong(t *testing.T) {
	for part, want := range map[string]string{
		"  kv: {}\n":                           "spec.kv.redis: is missing, and REDIS_URL is none: name the credential that holds the URL of a Redis",
		"  kv: {redis: nowhere}\n":             `spec.kv.redis: is not the name of a credential`,
		"  kv: {redis: 'redis://:s3cret@h'}\n": `spec.kv.redis: is not the name of a credential`,
		"  kv: {redis: store}\n  credentials: {store: {env: STORE_URL}}\n": "spec.kv.redis: redis url: want redis://",
		"  kv: {tenantBytes: 1}\n": "spec.kv.tenantBytes: must be bytes (4194304) to 68719476736",
		"  kv: {keys: -1}\n":       "spec.kv.keys: must be 1 to 10000",
		"  kv: {url: x}\n":         "spec.kv.url: ",
	} {
		file := filepath.Join(t.TempDir(), "tools.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: longshore.run/v1\nkind: Tools\nspec:\n"+part), 0o600); err != nil {
			t.Fatal(err)
		}
		s := new(settings.Worker)
		if err := settings.Load(s, []string{"NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_ENCRYPTION=off", "LONGSHORE_SCRIPT=x.yaml", "LONGSHORE_TOOLS=" + file, "STORE_URL=http://u:s3cret-s3cret@h"}); err != nil {
			t.Fatal(err)
		}
		_, err := toolbox.Open(t.Context(), &s.Tools, toolbox.Needs{Log: slog.New(slog.DiscardHandler), RedisURL: s.RedisURL})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %s", part, err, want)
		}
	}
}
