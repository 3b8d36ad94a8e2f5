//go:build unix

package fleet_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pipe without a writer, named wherever a file may be, neither hangs a command nor a process of the fleet.
func TestNamedPipesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, 30*time.Second, nil)
	nats := "NATS_URL=" + w.nats
	const dev = "dev|--addr|127.0.0.1:0|--nats-addr|127.0.0.1:0|--redis-addr|127.0.0.1:0"
	const nowhere = "NATS_URL=nats://127.0.0.1:1"
	for name, tc := range map[string]struct {
		args string // separated by |
		env  string
	}{
		"run":                   {args: "run|-f|" + pipe},
		"agents apply":          {args: "agents|apply|" + pipe},
		"agents apply a folder": {args: "agents|apply|" + dir},
		"run with agents":       {args: "run|x|--agents|" + dir},
		"schedules apply":       {args: "schedules|apply|-f|" + pipe},
		"prompts put":           {args: "prompts|put|p|-f|" + pipe},
		"batch submit":          {args: "batch|submit|" + pipe},
		"batch template":        {args: "batch|submit|x.jsonl|--template|" + pipe},
		"eval":                  {args: "eval|" + pipe},
		"dead letters":          {args: "dead|redrive|1|--edit|" + pipe},
		"prices import":         {args: "prices|import|" + pipe},
		"prices":                {args: "prices|list", env: "LONGSHORE_PRICES="},
		"a worker's prices":     {args: "worker", env: nats + " REDIS_URL=none OPENAI_API_KEY=k-123456789 OPENAI_MODEL=m LONGSHORE_PRICES="},
		"a worker's script":     {args: "worker", env: nats + " REDIS_URL=none LONGSHORE_SCRIPT="},
		"providers":             {args: "worker", env: nowhere + " LONGSHORE_PROVIDERS="},
		"credentials":           {args: "list", env: nowhere + " NATS_CREDS="},
		"a seed":                {args: "list", env: nowhere + " NATS_NKEY="},
		"authorities":           {args: "list", env: nowhere + " NATS_CA="},
		"the signing key":       {args: "dispatcher", env: nats + " LONGSHORE_SIGNING_KEY_FILE="},
		"the auditor's key":     {args: "audit|run", env: nowhere + " LONGSHORE_AUDIT_DIR=audit LONGSHORE_AUDIT_KEY_FILE="},
		"dev's certificate":     {args: dev, env: "LONGSHORE_AUTH=on LONGSHORE_TLS_KEY=/dev/zero LONGSHORE_TLS_CERT="},
		"dev's issuer":          {args: dev, env: "LONGSHORE_AUTH=on LONGSHORE_JWT_ISSUER=x LONGSHORE_JWT_AUDIENCE=x LONGSHORE_JWKS_URL="},
		"dev's collector":       {args: dev, env: "OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:1 OTEL_EXPORTER_OTLP_CERTIFICATE="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := strings.Fields(tc.env)
			if len(env) > 0 {
				env[len(env)-1] += pipe
			}
			p := spawn(t, name, env, binary, strings.Split(tc.args, "|")...)
			select {
			case <-p.done:
			case <-time.After(patience):
				t.Fatal("it does not end")
			}
			if said := strings.Join(p.log(), "\n"); p.code() == 0 || !strings.Contains(said, pipe+" is a pipe: name a regular file") {
				t.Errorf("it ended with %d and said:\n%s", p.code(), said)
			}
		})
	}
}
