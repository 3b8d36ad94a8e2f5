package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/command"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// A prompt that holds a key of the user's own environment is refused before anything is sent.
func TestPromptsWithKeysOfTheEnvironment(t *testing.T) {
	const key, password, listed = "sk-own-blue-harbour-77", "p4ss-of-redis", "sk-listed-quay-12345"
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	environ := []string{
		"OPENAI_API_KEY=" + key,
		"REDIS_URL=redis://u:" + password + "@127.0.0.1:1",
		"FAST_KEY=" + listed,
		"LONGSHORE_PROVIDERS=" + write("providers.yaml", "providers: [{name: fast, kind: openai, keyEnv: FAST_KEY, model: m}]"),
		"NATS_URL=nats://127.0.0.1:1", // nothing is there
	}
	file := write("p.txt", "Be kind.\nUse "+key+".\n\nOr "+password+", "+listed+".")
	want := []string{"line 2 holds a secret of OPENAI_API_KEY", "line 4 holds a secret of REDIS_URL", "line 4 holds a secret of FAST_KEY"}
	for _, args := range [][]string{{"validate"}, {"validate", "-o", "json"}, {"put", "p"}} {
		var out, errs strings.Builder
		process := command.Process{Version: "test", Environ: func() []string { return environ }, Stdout: &out, Stderr: &errs}
		code := command.Run(t.Context(), process, slices.Concat([]string{"prompts"}, args, []string{"-f", file}))
		told := out.String() + errs.String()
		for _, part := range want {
			if code != render.ExitFailed || !strings.Contains(errs.String(), part) {
				t.Errorf("%v: ended with %d and %s", args, code, told)
			}
		}
		if strings.Contains(told, key) || strings.Contains(told, password) || strings.Contains(told, listed) {
			t.Errorf("%v shows a secret: %s", args, told)
		}
	}
}
