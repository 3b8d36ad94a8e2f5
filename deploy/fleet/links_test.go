//go:build unix

package fleet_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The address that dev prints is that of the console, and --open gives it to the browser.
func TestDevOpensTheConsole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, told := filepath.Join(dir, "browser"), filepath.Join(dir, "told")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$1\" > "+told+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(told, 0o600); err != nil { // this test reads what the program writes, when it does
		t.Fatal(err)
	}
	flags := []string{"dev", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0", "--open"}
	dev := spawn(t, "dev", []string{"BROWSER=" + program}, binary, flags...)
	address := strings.TrimPrefix(dev.line("console: "), "console: ")
	opened, err := os.ReadFile(told)
	if err != nil || string(opened) != address+"\n" {
		t.Errorf("opened %q, %v: want %q", opened, err, address)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	page, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(page), "<title>Longshore</title>") {
		t.Errorf("%s: %.200q, %v", address, page, err)
	}
	dev.signal(syscall.SIGINT)
	dev.wait()

	gone := spawn(t, "dev", []string{"BROWSER=/nowhere/browser"}, binary, flags...)
	gone.line("no browser was opened: ", "/nowhere/browser", "or set BROWSER to a program")
	gone.signal(syscall.SIGINT)
	gone.wait()
	if got := call(t, []string{"LONGSHORE_CONSOLE=off"}, flags...); got.code != 2 || !strings.Contains(got.stderr, "LONGSHORE_CONSOLE is off") {
		t.Errorf("%+v", got)
	}
}

// A run says where it is in the console, to the error output, if that is known.
func TestLinksToRuns(t *testing.T) {
	t.Parallel()
	env := []string{"LONGSHORE_SCRIPT=" + scriptFile(t)}
	dev := spawn(t, "dev", env, binary, "dev", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0")
	ready := dev.line("longshore is ready: ")
	addresses := strings.Split(strings.TrimPrefix(ready, "longshore is ready: "), ", ")
	api, nats := addresses[0], addresses[1]
	for name, tc := range map[string]struct {
		env  []string
		args []string
		want string // empty: no link
	}{
		"over http":       {[]string{"LONGSHORE_URL=" + api}, []string{"submit", "x", "--id", "a"}, "see it at " + api + "/runs/a\n"},
		"another tenant":  {[]string{"LONGSHORE_URL=" + api + "/"}, []string{"submit", "x", "--id", "a", "--tenant", "acme"}, "see it at " + api + "/runs/a?tenant=acme\n"},
		"a public one":    {[]string{"LONGSHORE_URL=" + api, "LONGSHORE_CONSOLE_URL=https://c.example.com/x/"}, []string{"submit", "x"}, "see it at https://c.example.com/x/runs/"},
		"over nats":       {[]string{"NATS_URL=" + nats}, []string{"submit", "x"}, ""},
		"nats, known":     {[]string{"NATS_URL=" + nats, "LONGSHORE_CONSOLE_URL=https://c.example.com"}, []string{"submit", "x"}, "see it at https://c.example.com/runs/"},
		"off":             {[]string{"LONGSHORE_URL=" + api, "LONGSHORE_CONSOLE=off"}, []string{"submit", "x"}, ""},
		"json":            {[]string{"LONGSHORE_URL=" + api}, []string{"submit", "x", "-o", "json"}, ""},
		"run":             {[]string{"LONGSHORE_URL=" + api}, []string{"run", "x"}, "see it at " + api + "/runs/"},
		"run elsewhere":   {[]string{"NATS_URL=" + nats}, []string{"run", "x"}, ""},
		"run for a while": {env, []string{"run", "x", "--console"}, "see it at http://127.0.0.1:"},
		"run alone":       {append([]string{"LONGSHORE_CONSOLE_URL=https://c.example.com"}, env...), []string{"run", "x"}, ""},
	} {
		got := call(t, tc.env, tc.args...)
		if got.code != 0 || strings.Contains(got.stdout, "see it") {
			t.Errorf("%s: %+v", name, got)
		}
		if linked := strings.Contains(got.stderr, "see it"); linked != (tc.want != "") || !strings.Contains(got.stderr, tc.want) {
			t.Errorf("%s: want %q in %q", name, tc.want, got.stderr)
		}
	}
	for _, tc := range []struct {
		env  string
		want string
	}{
		{"LONGSHORE_CONSOLE=off", "LONGSHORE_CONSOLE is off"},
		{"NATS_URL=" + nats, "set LONGSHORE_CONSOLE_URL"},
	} {
		if got := call(t, []string{tc.env}, "run", "x", "--console"); got.code != 2 || !strings.Contains(got.stderr, tc.want) {
			t.Errorf("%s: %+v", tc.env, got)
		}
	}
	for _, wrong := range []string{"ftp://x", "https://user:secret@x", "https://x?key=1", "nothing"} {
		got := call(t, []string{"NATS_URL=" + nats, "LONGSHORE_CONSOLE_URL=" + wrong}, "submit", "x")
		if got.code != 2 || !strings.Contains(got.stderr, "LONGSHORE_CONSOLE_URL: must be") || strings.Contains(got.stderr, "secret") {
			t.Errorf("%s: %+v", wrong, got)
		}
	}
	dev.signal(syscall.SIGINT)
	dev.wait()
}
