//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// postgres is a server of the machine on a socket in a folder of its own.
type postgres struct {
	dir, url string
	cmd      *exec.Cmd
}

func startPostgres(ctx context.Context, dir string) (_ *postgres, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL: %w", err)
	}
	if slices.Sort(found); len(found) == 0 {
		return nil, fmt.Errorf("PostgreSQL %w", errNoServer)
	}
	server := found[len(found)-1]
	p := &postgres{}
	if p.dir, err = os.MkdirTemp(dir, "pg"); err != nil {
		return nil, fmt.Errorf("make temporary folder: %w", err)
	}
	who, err := p.unprivileged(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(p.dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(filepath.Dir(server), "initdb"),
		"-D", data, "-U", "peers", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = who, p.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	p.cmd = exec.CommandContext(ctx, server, "-D", data, "-k", p.dir, "-c", "listen_addresses=", "-c", "synchronous_commit=off", "-c", "shared_buffers=256MB")
	p.cmd.SysProcAttr, p.cmd.Dir = who, p.dir
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) }
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	address := url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: url.Values{"user": {"peers"}, "host": {p.dir}}.Encode()}
	p.url = address.String()
	err = until(ctx, func() error {
		conn, err := pgx.Connect(ctx, p.url)
		if err == nil {
			err = conn.Close(ctx)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), p.stop())
	}
	return p, nil
}

// unprivileged gives the folder to an unprivileged user: PostgreSQL refuses to start as root.
func (p *postgres) unprivileged(parent string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("find a user for PostgreSQL: %w", err)
		}
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2, os.Chown(p.dir, int(uid), int(gid)), os.Chmod(parent, 0o711)); err != nil {
		return nil, fmt.Errorf("give the folder to %s: %w", u.Username, err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// stop ends it and waits. Its folder is removed with the others.
func (p *postgres) stop() error { return stopServer(p.cmd) }
