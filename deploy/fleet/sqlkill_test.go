//go:build unix

package fleet_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
)

// lateProxy stands before a PostgreSQL and keeps the answer to the first COMMIT to itself.
type lateProxy struct {
	net.Listener

	committed chan struct{} // closed once a COMMIT is on its way
	once      sync.Once
	over      chan struct{}
	all       sync.WaitGroup
}

func newLateProxy(t *testing.T, dir string) *lateProxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lateProxy{Listener: l, committed: make(chan struct{}), over: make(chan struct{})}
	p.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.5432"))
			if err != nil {
				client.Close()
				continue
			}
			p.all.Go(func() { p.pass(client, server) })
		}
	})
	t.Cleanup(func() {
		close(p.over)
		l.Close()
		p.all.Wait()
	})
	return p
}

func (p *lateProxy) pass(client, server net.Conn) {
	held := make(chan struct{}) // closed when answers are no longer passed on
	var both sync.WaitGroup
	both.Go(func() {
		defer server.Close()
		for buf := make([]byte, 64<<10); ; {
			n, err := client.Read(buf)
			if bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
				p.once.Do(func() { close(held); close(p.committed) })
			}
			if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	})
	both.Go(func() {
		defer client.Close()
		for buf := make([]byte, 64<<10); ; {
			n, err := server.Read(buf)
			select {
			case <-held:
				_, _ = io.Copy(io.Discard, server)
				return
			default:
			}
			if _, werr := client.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	})
	stopped := make(chan struct{})
	go func() {
		select {
		case <-p.over:
			client.Close()
			server.Close()
		case <-stopped:
		}
	}()
	both.Wait()
	close(stopped)
}

// A worker that is killed while it changes rows, before the commit or after it, leaves a change that was not made or was made once. The next
// worker does not repeat it, and tells the model that it cannot know. A person has agreed to the call, once.
func TestKillWhileRowsAreChanged(t *testing.T) {
	t.Parallel()
	server := postgrestest.Open(t)
	if server == nil {
		return
	}
	for name, after := range map[string]bool{"before the commit": false, "after the commit": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := server.Database(t)
			role := "clerk_of_" + place
			server.Exec(t, place, "CREATE TABLE accounts (id int PRIMARY KEY, balance int); INSERT INTO accounts VALUES (1, 100); CREATE ROLE "+role+" LOGIN; GRANT SELECT, UPDATE ON accounts TO "+role)
			db, err := sql.Open("pgx", server.URL("longshore", place))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			balance := func() (n int) {
				if err := db.QueryRowContext(t.Context(), "SELECT balance FROM accounts").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			w := open(t, shortAckWait, func(c *modelCall) reply {
				if c.Turn == 0 {
					return reply{Tool: "sql_execute", Args: map[string]any{"database": "bank", "sql": "UPDATE accounts SET balance = balance - $1 WHERE id = 1", "params": []int{30}}}
				}
				return reply{Text: "Told: " + c.Last}
			})
			def := messages.Definition{Name: "clerk", Tools: []string{"sql_execute"}, Grants: &messages.Grants{Databases: []string{"bank"}, Writable: []string{"bank"}}}
			def.SetDefaults()
			if _, _, err := catalog.New(w.bus).PutAgent(t.Context(), def); err != nil {
				t.Fatal(err)
			}
			proxy := newLateProxy(t, server.Dir)
			dsn := url.URL{Scheme: "postgres", User: url.UserPassword(role, "s3cret-of-the-bank"), Host: proxy.Addr().String(), Path: place, RawQuery: "sslmode=disable"}
			file := filepath.Join(t.TempDir(), "tools.yaml")
			if err := os.WriteFile(file, []byte("apiVersion: longshore.run/v1\nkind: Tools\nspec:\n  credentials: {bank: {env: BANK_URL}}\n  sql: {databases: {bank: {driver: postgres, dsn: bank, write: true, timeout: 30s}}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			env := []string{"LONGSHORE_TOOLS=" + file, "BANK_URL=" + dsn.String()}
			var hold *sql.Tx
			if !after { // the statement waits for a lock, and the worker dies there
				if hold, err = db.BeginTx(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = hold.Rollback() }()
				if _, err := hold.ExecContext(t.Context(), "SELECT FROM accounts FOR UPDATE"); err != nil {
					t.Fatal(err)
				}
			}
			first := w.worker("first", env...)
			run := w.submit("work", func(t *messages.Task) { t.Agent = "clerk" })
			g := w.watch(run)
			asked := w.asked(run, "")
			if asked.Tool != "sql_execute" || balance() != 100 {
				t.Fatalf("a person is asked for %+v, and the balance is %d", asked, balance())
			}
			if _, err := w.client.Approvals().Approve(t.Context(), run, dispatcher.Decision{Call: asked.Call, Hash: asked.Hash, By: "ann"}); err != nil {
				t.Fatal(err)
			}
			want := 100
			if after {
				want = 70
				<-proxy.committed
				eventually(t, "the change is committed", func() bool { return balance() == want })
			} else {
				eventually(t, "the statement waits for the lock", func() bool {
					var n int
					if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND wait_event_type = 'Lock'", role).Scan(&n); err != nil {
						t.Fatal(err)
					}
					return n == 1
				})
			}
			second := w.worker("second", env...)
			r, _ := killOwner(t, first, g, "first", "first", "second")
			if hold != nil {
				if err := hold.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
					t.Fatal(err)
				}
			}
			completed(t, r, "Told: The outcome of this call is unknown: the worker was lost while it ran. It may or may not have taken effect; check before you repeat it.")
			if len(r.Actions) != 1 || r.Actions[0].Code != messages.CodeToolUnknownOutcome {
				t.Errorf("actions %+v", r.Actions)
			}
			eventually(t, "the connections of the role end", func() bool {
				var n int
				if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", role).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n == 0
			})
			if got := balance(); got != want {
				t.Errorf("the balance is %d, want %d", got, want)
			}
			for _, p := range []*process{first, second} {
				if out := strings.Join(p.log(), "\n") + p.out.String(); strings.Contains(out, "s3cret-of-the-bank") {
					t.Errorf("%s shows the password: %s", p.name, out)
				}
			}
			if text := fmt.Sprintf("%+v", r); strings.Contains(text, "s3cret") {
				t.Errorf("the result shows the password: %s", text)
			}
		})
	}
}
