//go:build unix

package postgrestest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// Server is a PostgreSQL of the machine, on a socket in a folder of its own. Its user longshore is a superuser without a password.
type Server struct {
	Dir string // of the socket

	cmd *exec.Cmd
	n   atomic.Int64 // databases
}

// start returns nil when the machine has none.
func start(tb testing.TB) (*Server, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return nil, err
	}
	slices.Sort(found)
	if len(found) == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	server := found[len(found)-1]
	p := &Server{}
	if p.Dir, err = os.MkdirTemp("", "pg"); err != nil { //nolint:usetesting // it outlives the test, and its path is short enough for a socket
		return nil, err
	}
	who, err := p.unprivileged()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.Dir))
	}
	data := filepath.Join(p.Dir, "data")
	initdb := exec.Command(filepath.Join(filepath.Dir(server), "initdb"), "-D", data, "-U", "longshore", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C") //nolint:gosec,noctx // the server of the machine
	initdb.SysProcAttr, initdb.Dir = who, p.Dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(p.Dir))
	}
	p.cmd = exec.Command(server, "-D", data, "-k", p.Dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60") //nolint:noctx // it outlives the test that starts it
	p.cmd.SysProcAttr, p.cmd.Dir = who, p.Dir
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.Dir))
	}
	for end := time.Now().Add(time.Minute); ; {
		if err = p.exec(context.WithoutCancel(tb.Context()), "postgres", "SELECT 1"); err == nil {
			return p, nil
		}
		if time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("postgres does not start: %w", err), p.stop())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// unprivileged gives the folder to an unprivileged user: PostgreSQL refuses to start as root.
func (p *Server) unprivileged() (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2, os.Chown(p.Dir, int(uid), int(gid))); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// URL is that of a database for a user.
func (p *Server) URL(user, database string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: url.Values{"user": {user}, "host": {p.Dir}}.Encode()}
	return u.String()
}

// Exec runs statements in a database as its owner.
func (p *Server) Exec(tb testing.TB, database, statements string) {
	tb.Helper()
	if err := p.exec(tb.Context(), database, statements); err != nil {
		tb.Fatal(err)
	}
}

func (p *Server) exec(ctx context.Context, database, statements string) error {
	db, err := sql.Open("pgx", p.URL("longshore", database))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = db.ExecContext(ctx, statements)
	return err
}

// Database makes an empty database and returns its name.
func (p *Server) Database(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test%d", p.n.Add(1))
	p.Exec(tb, "postgres", "CREATE DATABASE "+name)
	return name
}

// stop ends the server and removes what it has stored.
func (p *Server) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	_ = p.cmd.Wait()
	return os.RemoveAll(p.Dir)
}
