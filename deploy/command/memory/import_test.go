package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	command "github.com/longshore-run/longshore/deploy/command/memory"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages/memory"
)

// dev is a fleet with long-term memory and vectors, and how it is reached.
func dev(t *testing.T) *fleet.Dev {
	t.Helper()
	d, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), NoWorker: true, Abrupt: true, Version: "0.0.0", Log: slog.New(slog.DiscardHandler),
		Dev: settings.Dev{LongTerm: settings.LongTerm{Memory: settings.MemoryAuto, MemoryItems: 1000, MemoryBytes: 1 << 30, EmbeddingsModel: settings.EmbeddingsScripted}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func over(address string) conn.Connect { return overWith(address, "") }

// overWith is over with an API key.
func overWith(address, key string) conn.Connect {
	return func(context.Context) (*dispatcher.Client, func(), error) {
		c, err := dispatcher.NewHTTP(address, key)
		if err != nil {
			return nil, nil, err
		}
		return c, c.Close, nil
	}
}

// imported executes the command.
func imported(ctx context.Context, connect conn.Connect, stdin string, args ...string) (stdout, stderr string, err error) {
	cmd := command.Import(connect, report.Options{Raw: true, User: "karl"})
	var out, errs bytes.Buffer
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(ctx)
	return out.String(), errs.String(), err
}

// write makes files below the working directory.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// kept are the texts of a collection by document and part.
func kept(t *testing.T, connect conn.Connect, collection string) (texts map[string]string, items []memory.Item) {
	t.Helper()
	client, done, err := connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	texts = map[string]string{}
	for it, err := range client.Memory().All(t.Context(), memory.ListRequest{Name: collection, Whole: true}) {
		if err != nil {
			t.Fatal(err)
		}
		texts[fmt.Sprintf("%s#%d", it.Source.Document, it.Source.Part)] = it.Text
		items = append(items, *it)
	}
	return texts, items
}

// An import keeps what documents say with where it comes from; the next one changes what has changed, over NATS as over HTTP.
func TestImport(t *testing.T) {
	t.Chdir(t.TempDir())
	d := dev(t)
	web, nats := over("http://"+d.API), conn.Connect(func(ctx context.Context) (*dispatcher.Client, func(), error) {
		c, err := d.Client(ctx)
		return c, func() {}, err
	})
	write(t, map[string]string{
		"docs/berths.md": "# Berths\n\nBerth 7 is closed.\n\n## Cranes\n\nCrane 2 lifts 40 tons.\n", "docs/deep/fees.html": "<title>Fees</title><p>A tug costs 90.",
		"docs/.gitignore": "*.log\n", "docs/a.log": "ignored", "docs/.env": "KEY=1", "docs/logo.png": "\x89PNG\x00", "notes.txt": "Tides come twice a day.",
	})
	if err := os.Symlink("../notes.txt", "docs/link.md"); err != nil {
		t.Fatal(err)
	}
	args := []string{"docs", "./docs/berths.md", "notes.txt", "-", "--name", "piped.md", "--collection", "manuals", "--tag", "harbour"}
	const piped = "# Pilots\nAsk bob@example.com."
	out, errs, err := imported(t.Context(), web, piped, args...)
	if err != nil || out != "4 imported with 5 parts, 1 left out\n" {
		t.Errorf("%v: %s%s", err, out, errs)
	}
	for _, want := range []string{".env: looks like a secret; to import it", "link.md: a symbolic link", "1 name that the rules", "1 hidden file", "docs/logo.png: it is no text"} {
		if !strings.Contains(errs, want) {
			t.Errorf("it does not say %q:\n%s", want, errs)
		}
	}
	want := map[string]string{
		"docs/berths.md#0": "Berths\n\nBerth 7 is closed.", "docs/berths.md#1": "Berths > Cranes\n\nCrane 2 lifts 40 tons.",
		"docs/deep/fees.html#0": "Fees\n\nA tug costs 90.", "notes.txt#0": "notes\n\nTides come twice a day.", "piped.md#0": "Pilots\n\nAsk [redacted].",
	}
	texts, items := kept(t, web, "manuals")
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
	for _, it := range items {
		if it.Model != "scripted" || len(it.Tags) != 1 || it.Fields["parts"] == nil || (it.Fields["hash"] != nil) != (it.Source.Part == 0) {
			t.Errorf("%+v", it)
		}
	}

	out, _, err = imported(t.Context(), nats, piped, args...)
	if err != nil || out != "0 imported with 0 parts, 4 unchanged, 1 left out\n" {
		t.Errorf("again: %v, %s", err, out)
	}
	write(t, map[string]string{"docs/berths.md": "# Berths\n\nBerth 7 is open.\n"})
	out, errs, err = imported(t.Context(), nats, "", "docs", "--collection", "manuals", "--tag", "harbour", "-o", "json")
	if err != nil || !strings.Contains(out, `{"document":"docs/berths.md","status":"imported","parts":1,"removed":1,"title":"Berths"}`+"\n") {
		t.Errorf("%v: %s%s", err, out, errs)
	}
	want["docs/berths.md#0"] = "Berths\n\nBerth 7 is open."
	delete(want, "docs/berths.md#1")
	if texts, _ = kept(t, web, "manuals"); cmp.Diff(want, texts) != "" {
		t.Error(cmp.Diff(want, texts))
	}
	out, _, err = imported(t.Context(), web, "", "notes.txt", "--collection", "manuals", "--force")
	if err != nil || out != "1 imported with 1 part\n" {
		t.Errorf("with other tags: %v, %s", err, out)
	}
}

// One document that cannot be imported does not keep the others from it, and the command says which.
func TestOneBadDocument(t *testing.T) {
	t.Chdir(t.TempDir())
	d := dev(t)
	write(t, map[string]string{"good.md": "Good.", "bad.txt": "F\xe4hre", "bad.pdf": "%PDF-1.7", "picture.png": "\x89\x00", "server.key": "secret", "empty.md": ""})
	if err := os.Truncate("empty.md", 1<<30); err != nil { // a sparse file of 1 GiB
		t.Fatal(err)
	}
	out, errs, err := imported(t.Context(), over("http://"+d.API), "", "good.md", "bad.txt", "bad.pdf", "picture.png", "server.key", "empty.md", "missing.md", "--collection", "c")
	if err == nil || err.Error() != "6 of 7 documents could not be imported" || out != "1 imported with 1 part, 6 failed\n" {
		t.Errorf("%v: %s", err, out)
	}
	for _, want := range []string{
		"bad.txt: it is neither UTF-8", "bad.pdf: it cannot be read as PDF", "picture.png: it is no text", "server.key: its name is one of files that hold secrets",
		"empty.md: larger than 67108864 bytes", "missing.md: open missing.md: no such file",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("it does not say %q:\n%s", want, errs)
		}
	}
}

// An import that is interrupted in the middle of a document is continued by the same command, and leaves no part behind.
func TestInterruptedImport(t *testing.T) {
	t.Chdir(t.TempDir())
	d := dev(t)
	long := func(n int, what string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "## %d\n\nBerth %d is %s.\n\n", i, i, what)
		}
		return text.String()
	}
	backend, err := url.Parse("http://" + d.API)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(backend)
	var puts, interruptAt atomic.Int64
	var interrupt atomic.Pointer[context.CancelFunc]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && puts.Add(1) == interruptAt.Load() {
			(*interrupt.Load())()
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	web := over(server.URL)
	for step, tc := range []struct {
		parts int
		at    int64
	}{{150, 2}, {150, 4}, {150, 1}, {3, 1}, {2, 2}, {200, 3}} {
		write(t, map[string]string{"long.md": long(tc.parts, fmt.Sprint("open ", step))})
		ctx, cancel := context.WithCancel(t.Context())
		interrupt.Store(&cancel)
		puts.Store(0)
		interruptAt.Store(tc.at)
		_, _, err := imported(ctx, web, "", "long.md", "--collection", "c")
		cancel()
		if _, ok := errors.AsType[*render.Interrupted](err); !ok {
			t.Fatalf("step %d: %v", step, err)
		}
		if render.Exit(ctx, err, &bytes.Buffer{}) != render.ExitSignal {
			t.Errorf("step %d: another exit code", step)
		}
		interruptAt.Store(-1)
		if out, errs, err := imported(t.Context(), web, "", "long.md", "--collection", "c"); err != nil || !strings.HasPrefix(out, "1 imported") {
			t.Fatalf("step %d: %v, %s%s", step, err, out, errs)
		}
		texts, _ := kept(t, web, "c")
		for name, text := range texts {
			if !strings.HasSuffix(text, fmt.Sprintf("is open %d.", step)) {
				t.Errorf("step %d: %s is %q", step, name, text)
			}
		}
		if len(texts) != tc.parts {
			t.Errorf("step %d: %d parts, want %d", step, len(texts), tc.parts)
		}
	}
}

// Without a memory, and beyond a quota, the command ends with what to do, rather than with an error for each document.
func TestImportThatIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	d := dev(t)
	var text strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&text, "## %d\n\nBerth.\n", i)
	}
	write(t, map[string]string{"many.md": text.String()})
	_, _, err := imported(t.Context(), over("http://"+d.API), "", "many.md", "--collection", "c")
	if !errors.Is(err, dispatcher.ErrMemoryFull) || !strings.Contains(err.Error(), "the same command continues") {
		t.Errorf("%v", err)
	}
	_, _, err = imported(t.Context(), over("http://127.0.0.1:1"), "", "many.md", "--collection", "c")
	if err == nil || strings.Contains(err.Error(), "could not be imported") {
		t.Errorf("%v", err)
	}
}

func TestDryRun(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, map[string]string{"a.md": "# A\n\nText.\n\n## B\n\nText.\n"})
	nowhere := func(context.Context) (*dispatcher.Client, func(), error) { return nil, nil, errors.New("it connects") }
	out, _, err := imported(t.Context(), nowhere, "", "a.md", "--dry-run")
	if err != nil || out != "a.md: 2 parts\n1 read with 2 parts, nothing was stored\n" {
		t.Errorf("%v: %s", err, out)
	}
	out, _, err = imported(t.Context(), nowhere, "", "a.md", "--dry-run", "-o", "json")
	var line map[string]any
	if err != nil || json.Unmarshal([]byte(out), &line) != nil || line["status"] != "read" || line["parts"] != 2.0 {
		t.Errorf("%v: %s", err, out)
	}
	for _, wrong := range [][]string{
		{},
		{"a.md"},
		{"a.md", "--collection", "a.b"},
		{"a.md", "--collection", "c", "--chunk-size", "1"},
		{"a.md", "--collection", "c", "--overlap", "201"},
		{"a.md", "--collection", "c", "--tag", ""},
		{"a.md", "--collection", "c", "--tag", "a\nb"},
		{"-", "--collection", "c", "--name", "a\nb"},
		{"a.md", "--collection", "c", "--tenant", "a.>"},
		{"a.md", "--collection", "c", "--chunk-size", "many"},
	} {
		_, _, err := imported(t.Context(), nowhere, "", wrong...)
		if _, usage := errors.AsType[*render.UsageError](err); err == nil || !usage && !strings.Contains(err.Error(), "chunk-size") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
