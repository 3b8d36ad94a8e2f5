package sql_test

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/sql"
)

// asked is how a client introduces itself to a server without TLS, which asks for its password.
type asked struct {
	settings map[string]string
	password string
}

// doorman refuses each connection after it has heard who it is.
func doorman(t *testing.T) (addr string, heard <-chan asked) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan asked, 8)
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			greet(conn, out)
		}
	}()
	return l.Addr().String(), out
}

func greet(conn net.Conn, out chan<- asked) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	server := pgproto3.NewBackend(conn, conn)
	m, err := server.ReceiveStartupMessage()
	if err != nil {
		return
	}
	start, ok := m.(*pgproto3.StartupMessage)
	if !ok { // it asks for TLS, and comes again without
		_, _ = conn.Write([]byte("N"))
		return
	}
	server.Send(&pgproto3.AuthenticationCleartextPassword{})
	if server.Flush() != nil || server.SetAuthType(pgproto3.AuthTypeCleartextPassword) != nil {
		return
	}
	if m, err := server.Receive(); err == nil {
		if p, ok := m.(*pgproto3.PasswordMessage); ok {
			out <- asked{start.Parameters, p.Password}
		}
	}
	server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "28P01", Message: "no"})
	_ = server.Flush()
}

// query asks a database at a URL once.
func query(t *testing.T, dsn string) error {
	t.Helper()
	cfg, err := sql.ParseConfig([]byte(`{"databases":{"db":{"driver":"postgres","dsn":"where"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	made, err := sql.Tools(cfg, sql.Sources{Secret: func(string) (string, error) { return dsn, nil }})
	if err != nil {
		return err
	}
	set, err := tools.NewSet(made...)
	if err != nil {
		t.Fatal(err)
	}
	none := 0
	_, err = set.Call(context.WithoutCancel(t.Context()), "sql_query", tools.Call{
		Run: messages.Ref{Tenant: "t", Run: "r"}, Key: "k", Arguments: []byte(`{"database":"db","sql":"SELECT 1"}`), Retries: &none,
	})
	return err
}

// A database is reached as its URL says: what the worker's environment and the files of its user say of PostgreSQL, a password
// above all, goes to no server.
func TestOnlyTheURLSays(t *testing.T) {
	home := t.TempDir()
	for name, text := range map[string]string{
		".pgpass": "*:*:*:*:from-a-file\n", ".pg_service.conf": "[mine]\npassword=from-a-service\n", ".postgresql/root.crt": "no certificate",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	for name, env := range map[string]map[string]string{
		"files of the user": {},
		"variables": {
			"PGPASSWORD": "from-a-variable", "PGPASSFILE": filepath.Join(home, ".pgpass"), "PGUSER": "root", "PGDATABASE": "other", "PGHOST": "192.0.2.1",
			"PGPORT": "1", "PGOPTIONS": "-c log_statement=all", "PGTZ": "Asia/Tokyo", "PGSSLMODE": "verify-full", "PGSSLROOTCERT": filepath.Join(home, "none"),
			"PGAPPNAME": "other", "PGCONNECT_TIMEOUT": "x", "PGTARGETSESSIONATTRS": "standby", "PGREQUIREAUTH": "none", "PGCHANNELBINDING": "require",
			"PGMINPROTOCOLVERSION": "9", "PGSSLCERTMODE": "x", "PGSSLNEGOTIATION": "direct", "PGSERVICEFILE": filepath.Join(home, ".pg_service.conf"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range slices.Sorted(maps.Keys(env)) {
				t.Setenv(key, env[key])
			}
			for url, want := range map[string]asked{
				"postgres://agent@ADDR/shop":                          {map[string]string{"user": "agent", "database": "shop", "application_name": "longshore"}, ""},
				"postgres://agent:own@ADDR/shop?sslmode=disable":      {map[string]string{"user": "agent", "database": "shop", "application_name": "longshore"}, "own"},
				"postgres://ADDR?user=agent&password=own&dbname=shop": {map[string]string{"user": "agent", "database": "shop", "application_name": "longshore"}, "own"},
				"postgres://agent@ADDR/shop?search_path=a&TimeZone=UTC&options=-c%20jit%3Doff": {map[string]string{
					"user": "agent", "database": "shop", "application_name": "longshore", "search_path": "a", "TimeZone": "UTC", "options": "-c jit=off",
				}, ""},
			} {
				addr, heard := doorman(t)
				if err := query(t, strings.Replace(url, "ADDR", addr, 1)); err != nil {
					t.Errorf("%s: %v", url, err)
					continue
				}
				select {
				case got := <-heard:
					if got.password != want.password || !maps.Equal(got.settings, want.settings) {
						t.Errorf("%s: the server heard %+v, want %+v", url, got, want)
					}
				case <-time.After(30 * time.Second):
					t.Errorf("%s: the server was not asked", url)
				}
			}
		})
	}
	for url, want := range map[string]string{
		"postgres:///shop":                              "is a URL without a user",
		"postgres://agent@/shop":                        "is a URL without a host",
		"postgres://agent@h":                            "is a URL without a database",
		"postgres://agent:s3cret@h/shop?service=mine":   "names a service",
		"postgres://agent:s3cret@h/shop?sslmode=s3cret": "is not a URL that PostgreSQL understands",
	} {
		if err := query(t, url); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %v, want %s", url, err, want)
		}
	}
	t.Setenv("PGSERVICE", "mine")
	if err := query(t, "postgres://agent@h/shop"); err == nil || !strings.Contains(err.Error(), "while the variable PGSERVICE is set") {
		t.Errorf("with a service of the environment: %v", err)
	}
}
