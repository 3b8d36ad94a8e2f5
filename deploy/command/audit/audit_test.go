package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	auditcmd "github.com/longshore-run/longshore/deploy/command/audit"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/observability/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = time.Minute

// command executes a command line.
func command(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	root := &cobra.Command{Use: "longshore", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(auditcmd.Command("test", os.Environ, true))
	cli.Usage(root)
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"audit"}, args...))
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func key(t *testing.T) (file, public string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key")
	public, _, err := command(t, "key", file)
	if err != nil {
		t.Fatal(err)
	}
	return file, strings.TrimSpace(public)
}

// audited runs an auditor for a fleet until its folder shows something.
func audited(t *testing.T, s settings.Audit, enough func(text string) bool) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended, ready := make(chan error, 1), make(chan string, 1)
	go func() {
		ended <- auditcmd.Run(ctx, s, "test", slog.New(slog.DiscardHandler), func(addr string) { ready <- addr })
	}()
	select {
	case addr := <-ready:
		defer http.DefaultClient.CloseIdleConnections()
		if got := get(t, "http://"+addr+"/metrics"); !strings.Contains(got, "longshore_audit_lag_events") || !strings.Contains(got, "longshore_audit_findings_total 0") {
			t.Errorf("metrics: %s", got)
		}
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	text := ""
	for deadline := time.Now().Add(patience); !enough(text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("it does not come: %s", text)
			break
		}
		text, _, _ = command(t, "export", "--dir", s.Dir)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return text
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// The whole way: a fleet works a run, the auditor writes and compares it, the commands verify and export it.
func TestAuditOfAFleet(t *testing.T) {
	data := t.TempDir()
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: data, HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true,
		Version: "0.0.0", Log: slog.New(slog.DiscardHandler),
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
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := client.Submit(ctx, messages.Task{ID: "one", Input: messages.TextInput("hello")}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Wait(ctx, dispatcher.Run("one")); err != nil {
		t.Fatal(err)
	}
	file, public := key(t)
	s := settings.Audit{NATS: settings.NATS{URL: dev.NATS}, Dir: filepath.Join(t.TempDir(), "audit"), KeyFile: file, HTTPAddr: "127.0.0.1:0", Store: audit.Bucket, Encryption: settings.Encryption{Keyset: fleet.KeysetBeside(data)}}
	text := audited(t, s, func(text string) bool { return strings.Contains(text, "compared") })
	if strings.Contains(text, "finding") || !strings.Contains(text, "run_finished") {
		t.Errorf("%s", text)
	}
	stdout, _, err := command(t, "verify", "--dir", s.Dir, "--public-key", public)
	if err != nil || !strings.Contains(stdout, "all are as they were written\nnewest head: ") || strings.Contains(stdout, "not checked") {
		t.Errorf("%s %v", stdout, err)
	}
	// The copy is the same, and goes nowhere where something is.
	to, was := filepath.Join(t.TempDir(), "copy"), stdout
	t.Setenv("NATS_URL", dev.NATS)
	if stdout, _, err = command(t, "fetch", "--dir", to); err != nil || stdout == "0 segments, 0 bytes\n" {
		t.Errorf("%s %v", stdout, err)
	}
	if stdout, _, err = command(t, "verify", "--dir", to, "--public-key", public); err != nil || stdout != was {
		t.Errorf("%s %v", stdout, err)
	}
	type fetched struct {
		audit.Fetched

		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	var again, failed fetched
	stdout, _, err = command(t, "fetch", "--dir", filepath.Join(t.TempDir(), "again"), "-o", "json")
	if err != nil || json.Unmarshal([]byte(stdout), &again) != nil || again.Segments == 0 || again.Bytes == 0 || !again.OK {
		t.Errorf("%s %v", stdout, err)
	}
	stdout, _, err = command(t, "fetch", "--dir", to, "-o", "json")
	if err == nil || !strings.Contains(err.Error(), "not empty") || json.Unmarshal([]byte(stdout), &failed) != nil || failed.OK || failed.Error != err.Error() {
		t.Errorf("%s %v", stdout, err)
	}
	_, rest, _ := strings.Cut(was, "newest head: ")
	head, _, _ := strings.Cut(rest, " ")
	stdout, _, err = command(t, "verify", "--dir", s.Dir, "--head", head, "-o", "json")
	var report struct {
		Findings int    `json:"findings"`
		Head     any    `json:"head"`
		List     *[]any `json:"list"`
	}
	if err != nil || json.Unmarshal([]byte(stdout), &report) != nil || report.Findings != 0 || report.Head == nil || report.List == nil {
		t.Errorf("%s %v", stdout, err)
	}
	stdout, _, err = command(t, "export", "--dir", s.Dir, "--run", "one", "--tenant", "default", "--since", "1h", "-o", "json")
	for line := range strings.Lines(stdout) {
		var v struct {
			Tenant string         `json:"tenant"`
			Entry  map[string]any `json:"entry"`
		}
		if json.Unmarshal([]byte(line), &v) != nil || v.Tenant != "default" || v.Entry["n"] == nil {
			t.Errorf("%s", line)
		}
	}
	if err != nil || strings.Count(stdout, "\n") < 6 {
		t.Errorf("%s %v", stdout, err)
	}
	if stdout, stderr, err := command(t, "export", "--dir", s.Dir, "--tenant", "unknown"); err != nil || stdout != "" || stderr != "no such entries\n" {
		t.Errorf("%s %s %v", stdout, stderr, err)
	}
	// What the run was told is encrypted, and is opened for those who have the keyset.
	if stdout, _, err = command(t, "export", "--dir", s.Dir, "--run", "one", "-o", "json"); err != nil || strings.Contains(stdout, "hello") || !strings.Contains(stdout, `"sealed":"`) {
		t.Errorf("%s %v", stdout, err)
	}
	var missing *settings.Error
	if _, _, err = command(t, "export", "--dir", s.Dir, "--open"); !errors.As(err, &missing) || !strings.Contains(err.Error(), "LONGSHORE_KEYSET is missing") {
		t.Errorf("%v", err)
	}
	t.Setenv("LONGSHORE_KEYSET", s.Keyset)
	if stdout, _, err = command(t, "export", "--dir", s.Dir, "--run", "one", "--open", "-o", "json"); err != nil || !strings.Contains(stdout, "hello") || strings.Contains(stdout, `"sealed":"`) {
		t.Errorf("%s %v", stdout, err)
	}
	// An attacker changes an entry.
	segment := filepath.Join(s.Dir, "tenants", "default", "00000000000000000001.jsonl")
	body, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(body, []byte(`"sealed":"/0xTMQ`), []byte(`"sealed":"/0xTMR`), 1)
	if err := os.WriteFile(segment, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _, err = command(t, "verify", "--dir", s.Dir, "--public-key", public)
	if !errors.Is(err, auditcmd.ErrFound) || !strings.Contains(stdout, "tenant default, tenants/default/00000000000000000001.jsonl, line ") || !strings.Contains(stdout, ": changed: ") {
		t.Errorf("%s %v", stdout, err)
	}
	if _, stderr, err := command(t, "export", "--dir", s.Dir); !errors.Is(err, auditcmd.ErrFound) || !strings.Contains(stderr, "changed") {
		t.Errorf("%s %v", stderr, err)
	}
}

func TestKeyAsJSON(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	stdout, _, err := command(t, "key", file, "-o", "json")
	var got map[string]string
	if err != nil || json.Unmarshal([]byte(stdout), &got) != nil || len(got) != 1 {
		t.Fatalf("%s %v", stdout, err)
	}
	seed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := audit.ParseKey(string(seed)); err != nil || got["key"] != key.Public() {
		t.Errorf("%s %v", stdout, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	file, public := key(t)
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		args  []string
		usage bool
		want  string
	}{
		"a key that is there":   {[]string{"key", file}, true, "exists already"},
		"a key without a file":  {[]string{"key"}, true, "one file"},
		"verify nothing":        {[]string{"verify"}, true, "--dir"},
		"verify nowhere":        {[]string{"verify", "--dir", filepath.Join(dir, "no")}, false, "no such file"},
		"an empty folder":       {[]string{"verify", "--dir", dir}, false, "differs from what was written"},
		"not a key":             {[]string{"verify", "--dir", dir, "--public-key", "x"}, true, "--public-key"},
		"not a head":            {[]string{"verify", "--dir", dir, "--head", "1:x"}, true, "--head"},
		"verify in yaml":        {[]string{"verify", "--dir", dir, "-o", "yaml"}, true, "text or json"},
		"export in yaml":        {[]string{"export", "--dir", dir, "-o", "yaml"}, true, "text or json"},
		"since never":           {[]string{"export", "--dir", dir, "--since", "x"}, true, "--since"},
		"an odd run":            {[]string{"export", "--dir", dir, "--run", "a.b"}, true, "--run"},
		"run without NATS":      {[]string{"run", "--dir", dir, "--key", file}, false, "NATS_URL is missing"},
		"fetch nowhere":         {[]string{"fetch"}, true, "--dir"},
		"fetch from an odd one": {[]string{"fetch", "--dir", "x", "--store", "a.b"}, true, "--store"},
		"fetch in yaml":         {[]string{"fetch", "--dir", "x", "-o", "yaml"}, true, "text or json"},
		"a key in yaml":         {[]string{"key", "x", "-o", "yaml"}, true, "text or json"},
		"verify with one more":  {[]string{"verify", "x"}, true, "x"},
		"the keys of no one":    {[]string{"export", "--dir", dir, "--public-key", public + "x"}, true, "not a public key"},
	} {
		_, _, err := command(t, tc.args...)
		_, usage := errors.AsType[*render.UsageError](err)
		if err == nil || usage != tc.usage || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
