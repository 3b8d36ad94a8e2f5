//go:build unix

package fleet_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

// An exposed address without authentication is refused with exit code 2 and one line.
func TestOpenAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env, args []string
		want      string
	}{
		"dev on all addresses": {nil, []string{"dev", "--addr", "0.0.0.0:0"}, "the HTTP address 0.0.0.0:0 is not loopback"},
		"NATS of dev on all":   {nil, []string{"dev", "--addr", "127.0.0.1:0", "--nats-addr", ":0"}, "--nats-addr :0 is not loopback"},
		"Redis of dev on all":  {nil, []string{"dev", "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", ":0"}, "--redis-addr :0 is not loopback"},
		"a dispatcher on all":  {[]string{"NATS_URL=nats://127.0.0.1:1", "LONGSHORE_HTTP_ADDR=:0"}, []string{"dispatcher"}, "the HTTP address :0 is not loopback"},
		"not a certificate":    {[]string{"LONGSHORE_TLS_CERT=none", "LONGSHORE_TLS_KEY=none"}, []string{"dev", "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0"}, "LONGSHORE_TLS_CERT: "},
		"not a file of keys":   {[]string{"LONGSHORE_AUTH=on", "LONGSHORE_JWKS_URL=none", "LONGSHORE_JWT_ISSUER=i", "LONGSHORE_JWT_AUDIENCE=a"}, []string{"dev", "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0"}, "LONGSHORE_JWKS_URL: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.args[0] == "dev" {
				tc.args = append(tc.args, "--data", t.TempDir())
			}
			got := call(t, append(tc.env, "LONGSHORE_LOG_LEVEL=error"), tc.args...)
			if got.code != 2 || !strings.HasPrefix(got.stderr, "longshore: "+tc.want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// The whole way: a guarded fleet, the first key by the command, a request with it. It says what has no authentication.
func TestKeysFromTheCommand(t *testing.T) {
	t.Parallel()
	start := func(env ...string) (p *process, api, nats string) {
		p = spawn(t, "dev", env, binary, "dev", "--data", t.TempDir(), "--addr", "127.0.0.1:0",
			"--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0")
		at := strings.Split(strings.TrimPrefix(p.line("longshore is ready: "), "longshore is ready: "), ", ")
		p.line("No model is configured") // the last thing that it says
		return p, at[0], at[1]
	}
	ask := func(url, key string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/tasks", nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	open, api, _ := start()
	if got := ask(api, ""); got != http.StatusOK {
		t.Errorf("without auth: %d", got)
	}
	const says = "Authentication is disabled"
	if log := strings.Join(open.log(), "\n"); !strings.Contains(log, says) {
		t.Errorf("it does not say that: %s", log)
	}
	guarded, api, nats := start("LONGSHORE_AUTH=on")
	if got := ask(api, ""); got != http.StatusUnauthorized {
		t.Errorf("without a key: %d", got)
	}
	made := call(t, []string{"NATS_URL=" + nats}, "keys", "api", "create", "--tenant", messages.DefaultTenant, "--role", "viewer")
	if made.code != 0 || !strings.HasPrefix(made.stdout, "lsk_") {
		t.Fatalf("%+v", made)
	}
	key := strings.TrimSpace(made.stdout)
	if got := ask(api, key); got != http.StatusOK {
		t.Errorf("with a key: %d", got)
	}
	if log := strings.Join(guarded.log(), "\n"); strings.Contains(log, says) || strings.Contains(log, key) {
		t.Errorf("it says: %s", log)
	}
}
