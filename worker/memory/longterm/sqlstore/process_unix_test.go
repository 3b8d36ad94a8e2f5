//go:build unix

package sqlstore_test

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/sqlstore"
)

// Variables of a process that a test starts of itself: what it does, with which file.
const (
	roleVariable  = "LONGSHORE_TEST_ROLE"
	placeVariable = "LONGSHORE_TEST_PLACE"
)

// other is a process of a test that does its role with a file.
type other struct {
	in  io.WriteCloser
	out *bufio.Scanner
	cmd *exec.Cmd
}

// spawn starts this test again as another process, by a program with arguments if there are any.
func spawn(t *testing.T, role, place string, by ...string) *other {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(by, self, "-test.run=^TestOtherProcess$", "-test.timeout=2m")
	o := &other{cmd: exec.CommandContext(t.Context(), args[0], args[1:]...)}
	o.cmd.Env = append(os.Environ(), roleVariable+"="+role, placeVariable+"="+place)
	o.cmd.Stderr = os.Stderr
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.out = bufio.NewScanner(out)
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return o
}

// line is the next thing that the process says.
func (o *other) line(t *testing.T) string {
	t.Helper()
	if !o.out.Scan() {
		t.Fatalf("the other process ended: %v", o.cmd.Wait())
	}
	return o.out.Text()
}

// end lets the process end.
func (o *other) end(t *testing.T) {
	t.Helper()
	_ = o.in.Close()
	for o.out.Scan() {
		if text := o.out.Text(); text != "PASS" {
			t.Error(text)
		}
	}
	if err := o.cmd.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
}

const perProcess = 200 // items that each of two processes writes

// This is what other processes do; alone it does nothing.
func TestOtherProcess(t *testing.T) {
	place := os.Getenv(placeVariable)
	switch os.Getenv(roleVariable) {
	case "lock": // the file, until the input ends
		db, err := sql.Open("sqlite", place+"?_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		lock, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("locked")
		_, _ = io.Copy(io.Discard, os.Stdin)
		if err := lock.Rollback(); err != nil {
			t.Error(err)
		}
	case "write":
		s := open(t, sqlstore.Config{Where: place})
		fmt.Println("open")
		writeMany(t, s, "other")
	case "full":
		onFullDisk(t, place)
	}
}

// writeMany writes items one by one, as two processes do at once.
func writeMany(t *testing.T, s *sqlstore.Store, name string) {
	t.Helper()
	for i := range perProcess {
		if err := s.Write(t.Context(), longtermtest.Place("c"), []longterm.Item{{ID: name + strconv.Itoa(i), Text: "anchor"}}); err != nil {
			t.Errorf("%s %d: %v", name, i, err)
			return
		}
	}
}

// While another process has locked the file, reads continue and a write says so within its timeout; afterwards it works.
func TestSQLiteLockedByAnotherProcess(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "memory.db")
	s, hasty := open(t, sqlstore.Config{Where: place}), open(t, sqlstore.Config{Where: place, Timeout: 500 * time.Millisecond})
	put(t, s, "before", "anchor")
	o := spawn(t, "lock", place)
	if said := o.line(t); said != "locked" {
		t.Fatal(said)
	}
	began := time.Now()
	err := hasty.Write(t.Context(), longtermtest.Place("c"), []longterm.Item{{ID: "during"}})
	if took := time.Since(began); !errors.Is(err, longterm.ErrUnavailable) || took > soon {
		t.Errorf("%v after %v", err, took)
	}
	if !has(t, s, "before") || has(t, s, "during") {
		t.Error("a read does not see what was written before, or sees what was refused")
	}
	o.end(t)
	put(t, s, "after", "")
}

// Two processes write one file at the same time: nothing is lost, and what the tenant has is counted once.
func TestTwoProcessesOnOneFile(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "memory.db")
	s := open(t, sqlstore.Config{Where: place})
	put(t, s, "first", "anchor")
	o := spawn(t, "write", place)
	if said := o.line(t); said != "open" {
		t.Fatal(said)
	}
	writeMany(t, s, "own")
	o.end(t)
	stats, err := s.Stats(t.Context(), "acme")
	if err != nil || stats.Items != 2*perProcess+1 {
		t.Errorf("%+v, %v", stats, err)
	}
	found, err := s.Search(t.Context(), longtermtest.Place("c"), longterm.Search{Text: "anchor", TopK: longterm.MaxTopK})
	if err != nil || len(found.Hits) != longterm.MaxTopK || !has(t, s, "other0") || !has(t, s, "own"+strconv.Itoa(perProcess-1)) {
		t.Errorf("%d hits, %v", len(found.Hits), err)
	}
}

// On a disk that is full a write and a deletion, whose log needs space too, say so and change nothing. Reads continue, and all works once there is room.
func TestSQLiteOnFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount := []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `mount -t tmpfs -o size=24m none "$0" && exec "$@"`, dir}
	try := exec.CommandContext(t.Context(), mount[0], append(mount[1:], "true")...)
	if out, err := try.CombinedOutput(); err != nil {
		t.Logf("this system mounts no small disk for a test (%v: %s): a full disk was left out", err, out)
		return
	}
	spawn(t, "full", filepath.Join(dir, "memory.db"), mount...).end(t)
}

func onFullDisk(t *testing.T, place string) {
	t.Helper()
	s, at := open(t, sqlstore.Config{Where: place}), longtermtest.Place("c")
	put(t, s, "before", "anchor")
	besides := filepath.Join(filepath.Dir(place), "else") // what else is on the disk
	err := os.WriteFile(besides, make([]byte, 8<<20), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = s.Write(t.Context(), at, []longterm.Item{{ID: fmt.Sprint("i", n), Text: strings.Repeat("anchor ", 9000)}})
	}
	if !errors.Is(err, longterm.ErrStorageFull) || n < 2 {
		t.Fatalf("%v after %d writes", err, n)
	}
	if stats, err := s.Stats(t.Context(), at.Tenant); err != nil || stats.Items != int64(n) || has(t, s, fmt.Sprint("i", n-1)) {
		t.Errorf("%+v, %v after %d writes", stats, err, n)
	}
	if found, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor"}); err != nil || len(found.Hits) == 0 {
		t.Errorf("%d hits, %v", len(found.Hits), err)
	}
	var more []string
	for i := range n - 1 {
		more = append(more, fmt.Sprint("i", i))
	}
	if removed, err := s.Delete(t.Context(), at, longterm.Deletion{IDs: more}); !errors.Is(err, longterm.ErrStorageFull) || removed != 0 || !has(t, s, "i0") {
		t.Errorf("deleted %d of %d on a full disk, %v", removed, n-1, err)
	}
	if err := os.Remove(besides); err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Delete(t.Context(), at, longterm.Deletion{IDs: more}); err != nil || removed != n-1 {
		t.Errorf("deleted %d of %d, %v", removed, n-1, err)
	}
	put(t, s, "after", strings.Repeat("anchor ", 9000))
}

// line is a way to a PostgreSQL that can be cut.
type line struct {
	mu     sync.Mutex
	l      net.Listener
	cut    bool
	conns  map[net.Conn]bool
	served sync.WaitGroup
}

// lineTo serves a way to the socket of a server, on a port of its own.
func lineTo(t *testing.T, server *postgrestest.Server) (*line, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	way := &line{l: l, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = l.Close()
		way.set(true)
		way.served.Wait()
	})
	way.served.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("unix", filepath.Join(server.Dir, ".s.PGSQL.5432"))
			if err != nil || !way.add(down, up) {
				_ = down.Close()
				continue
			}
			for _, c := range [][2]net.Conn{{down, up}, {up, down}} {
				way.served.Go(func() {
					_, _ = io.Copy(c[0], c[1])
					_, _ = c[0].Close(), c[1].Close()
				})
			}
		}
	})
	return way, l.Addr().String()
}

// add keeps two ends of a connection, unless the line is cut.
func (w *line) add(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		if w.cut {
			_ = c.Close()
		}
		w.conns[c] = true
	}
	return !w.cut
}

// set cuts the line, or mends it.
func (w *line) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for c := range w.conns {
		_ = c.Close()
		delete(w.conns, c)
	}
}

// A PostgreSQL that goes away fails each call within its timeout, and is used with the next call once it is back.
func TestPostgresAwayAndBack(t *testing.T) {
	t.Parallel()
	server := postgrestest.Open(t)
	if server == nil {
		return
	}
	way, addr := lineTo(t, server)
	s := open(t, sqlstore.Config{Where: "postgres://longshore@" + addr + "/" + server.Database(t) + "?sslmode=disable", Timeout: 10 * time.Second})
	at := longtermtest.Place("c")
	put(t, s, "before", "anchor")
	way.set(true)
	for range 3 {
		began := time.Now()
		err := s.Write(t.Context(), at, []longterm.Item{{ID: "during"}})
		if took := time.Since(began); !errors.Is(err, longterm.ErrUnavailable) || took > soon {
			t.Errorf("a write: %v after %v", err, took)
		}
		if _, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor"}); !errors.Is(err, longterm.ErrUnavailable) {
			t.Errorf("a search: %v", err)
		}
	}
	way.set(false)
	put(t, s, "after", "anchor")
	if !has(t, s, "before") || has(t, s, "during") || !has(t, s, "after") {
		t.Error("what was written before or after is not there, or what was refused is")
	}
}
