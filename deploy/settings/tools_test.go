package settings_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
)

// toolsFile writes a tools file with a spec, and the file of a secret beside it.
func toolsFile(t *testing.T, spec string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tools.yaml")
	for file, text := range map[string]string{
		name: "apiVersion: longshore.run/v1\nkind: Tools\nspec:\n" + spec, filepath.Join(filepath.Dir(name), "key"): " from-a-file-42\n",
		filepath.Join(filepath.Dir(name), "empty"): "\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

func worker(file string, more ...string) (*settings.Worker, error) {
	s := new(settings.Worker)
	return s, settings.Load(s, append(more, "NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_ENCRYPTION=off", "LONGSHORE_SCRIPT=x.yaml", "LONGSHORE_TOOLS="+file))
}

func TestToolsFile(t *testing.T) {
	file := toolsFile(t, `  credentials:
    tracker: {env: TRACKER_TOKEN, hosts: [api.tracker.example]}
    orders: {file: key}
    shop: {env: SHOP_URL}
  http: {hosts: [api.tracker.example]}
`)
	s, err := worker(file, "TRACKER_TOKEN=from-a-variable-42", "SHOP_URL=postgres://me:within-a-url-42@h/db?sslpassword=another-42")
	if err != nil {
		t.Fatal(err)
	}
	g := s.Granted()
	if got := g.Credentials.Names(); !slices.Equal(got, []string{"orders", "shop", "tracker"}) {
		t.Errorf("credentials %v", got)
	}
	if len(g.Families) != 1 || !strings.Contains(string(g.Families["http"]), "api.tracker.example") || g.Dir != filepath.Dir(file) {
		t.Errorf("granted %+v", g)
	}
	secrets := settings.Secrets(*s)
	for _, want := range []string{"from-a-variable-42", "from-a-file-42", "within-a-url-42", "another-42"} {
		if !slices.Contains(secrets, want) {
			t.Errorf("%s would not be redacted", want)
		}
	}
	held, err := settings.HeldBy([]string{"LONGSHORE_TOOLS=" + file, "TRACKER_TOKEN=from-a-variable-42", "SHOP_URL=x"})
	if err != nil || !slices.ContainsFunc(held, func(h settings.Held) bool {
		return h.Variable == "LONGSHORE_TOOLS" && slices.Contains(h.Values, "from-a-variable-42")
	}) {
		t.Errorf("held %v, %v", held, err)
	}
	if s, err := worker(""); err != nil || len(s.Granted().Families) != 0 || s.Granted().Credentials.Has("x") {
		t.Errorf("without a file: %+v, %v", s.Granted(), err)
	}
}

func TestWrongToolsFiles(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"no variable":       {"  credentials: {a: {env: MISSING}}", "spec.credentials.a: the variable MISSING is not set"},
		"a secret for env":  {"  credentials: {a: {env: sk-live-7f}}", "spec.credentials.a.env: must be the name of the variable"},
		"one like a name":   {"  credentials: {a: {env: ghp_7fA}}", "spec.credentials.a: the variable that env names is not set"},
		"an empty file":     {"  credentials: {a: {file: empty}}", "spec.credentials.a: the file empty is empty"},
		"no file":           {"  credentials: {a: {file: gone}}", "spec.credentials.a: "},
		"a strange name":    {"  credentials: {a b: {file: key}}", "spec.credentials.a b"},
		"an unknown field":  {"  credentials: {a: {file: key, colour: red}}", "spec.credentials.a.colour: unknown field"},
		"a slip":            {"  credentials: {a: {flie: key}}", "spec.credentials.a.flie: unknown field: did you mean file?"},
		"no value":          {"  kv:", "spec.kv: has no value: write {} for the defaults"},
		"no host":           {"  credentials: {a: {file: key, header: X-Key}}", "spec.credentials.a.hosts: is missing"},
		"too many retries":  {"  retries: {kv_get: {retries: 11}}", "spec.retries.kv_get.retries: must be 0 to 10"},
		"a long wait":       {"  retries: {kv_get: {first: 2m}}", "spec.retries.kv_get.first: must be up to 1m"},
		"a wait below zero": {"  retries: {kv_get: {most: -1s}}", "spec.retries.kv_get.most: must be up to 10m"},
		"waits crossed":     {"  retries: {kv_get: {first: 2s, most: 1s}}", "spec.retries.kv_get.most: must not be shorter than first"},
		"a slip in retries": {"  retries: {kv_get: {retires: 1}}", "spec.retries.kv_get.retires: unknown field: did you mean retries?"},
		"a list":            {"  - http", "spec: must be an object"},
		"another kind":      {"  {}\nkind: Agent", "kind"},
		"nothing but words": {" hello", "spec: must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			file := toolsFile(t, c.spec)
			_, err := worker(file)
			if err == nil || !strings.HasPrefix(err.Error(), "LONGSHORE_TOOLS: "+file+": ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "7f") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := worker(filepath.Join(t.TempDir(), "gone.yaml")); err == nil || !strings.HasPrefix(err.Error(), "LONGSHORE_TOOLS: ") {
		t.Errorf("no file: %v", err)
	}
}
