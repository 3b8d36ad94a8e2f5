//go:build unix

package index_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// postgres is the server of these tests; nil when the machine has none.
var postgres *postgresServer

// postgresServer is a PostgreSQL of the machine, on a socket in a folder of its own.
type postgresServer struct {
	dir string
	cmd *exec.Cmd
	n   atomic.Int64 // databases
}

// startPostgres returns nil when the machine has none.
func startPostgres() (*postgresServer, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return nil, err
	}
	slices.Sort(found)
	if len(found) == 0 {
		return nil, nil
	}
	server := found[len(found)-1]
	p := &postgresServer{}
	if p.dir, err = os.MkdirTemp("", "pg"); err != nil {
		return nil, err
	}
	who, err := p.unprivileged()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	data := filepath.Join(p.dir, "data")
	initdb := exec.Command(filepath.Join(filepath.Dir(server), "initdb"), "-D", data, "-U", "longshore", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = who, p.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(p.dir))
	}
	p.cmd = exec.Command(server, "-D", data, "-k", p.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60")
	p.cmd.SysProcAttr, p.cmd.Dir = who, p.dir
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	for end := time.Now().Add(time.Minute); ; {
		if err = p.exec("SELECT 1"); err == nil {
			return p, nil
		}
		if time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("postgres does not start: %w", err), p.stop())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// unprivileged gives the folder to an unprivileged user: PostgreSQL refuses to start as root.
func (p *postgresServer) unprivileged() (*syscall.SysProcAttr, error) {
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
	if err := errors.Join(err1, err2, os.Chown(p.dir, int(uid), int(gid))); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

func (p *postgresServer) url(database string) string {
	return "postgres:///" + database + "?user=longshore&host=" + p.dir
}

func (p *postgresServer) exec(statement string) error {
	db, err := sql.Open("pgx", p.url("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// database makes an empty database and returns its URL.
func (p *postgresServer) database(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test%d", p.n.Add(1))
	if err := p.exec("CREATE DATABASE " + name); err != nil {
		tb.Fatal(err)
	}
	return p.url(name)
}

func (p *postgresServer) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	_ = p.cmd.Wait()
	return os.RemoveAll(p.dir)
}
