//go:build unix

package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/sqlstore"
)

// soon bounds what must not hang: far more than the timeouts of these tests.
const soon = 30 * time.Second

func put(t *testing.T, s *sqlstore.Store, id, text string) {
	t.Helper()
	if err := s.Write(t.Context(), longtermtest.Place("c"), []longterm.Item{{ID: id, Text: text}}); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, s *sqlstore.Store, id string) bool {
	t.Helper()
	items, err := s.Read(t.Context(), longtermtest.Place("c"), []string{id})
	if err != nil {
		t.Fatal(err)
	}
	return len(items) == 1
}

// While another process has locked the file, reads continue, and a write says what is the matter and changes nothing.
func TestSQLiteLocked(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "memory.db")
	s, hasty := open(t, sqlstore.Config{Where: place}), open(t, sqlstore.Config{Where: place, Timeout: 500 * time.Millisecond})
	put(t, s, "before", "anchor")
	db, err := sql.Open("sqlite", place+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	lock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = hasty.Write(t.Context(), longtermtest.Place("c"), []longterm.Item{{ID: "during"}})
	if took := time.Since(began); !errors.Is(err, longterm.ErrUnavailable) || took > soon {
		t.Errorf("%v after %v", err, took)
	}
	if !has(t, s, "before") || has(t, s, "during") {
		t.Error("a read does not see what was written before, or sees what was refused")
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	put(t, s, "after", "")
}

// When the disk is full a write says so and changes nothing; reads continue, and there is room again after a deletion.
func TestSQLiteFull(t *testing.T) {
	t.Parallel()
	s := open(t, sqlstore.Config{Where: filepath.Join(t.TempDir(), "memory.db")})
	put(t, s, "before", "anchor")
	if err := s.Exec(t.Context(), "PRAGMA max_page_count = 400"); err != nil { // as small as a disk may be
		t.Fatal(err)
	}
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = s.Write(t.Context(), longtermtest.Place("c"), []longterm.Item{{ID: fmt.Sprint("i", n), Text: strings.Repeat("anchor ", 9000)}})
	}
	if !errors.Is(err, longterm.ErrStorageFull) || n < 2 {
		t.Fatalf("%v after %d writes", err, n)
	}
	stats, err := s.Stats(t.Context(), "acme")
	if err != nil || stats.Items != int64(n) || has(t, s, fmt.Sprint("i", n-1)) {
		t.Errorf("%+v, %v after %d writes", stats, err, n)
	}
	found, err := s.Search(t.Context(), longtermtest.Place("c"), longterm.Search{Text: "anchor"})
	if err != nil || len(found.Hits) == 0 {
		t.Errorf("%d hits, %v", len(found.Hits), err)
	}
	if removed, err := s.Delete(t.Context(), longtermtest.Place("c"), longterm.Deletion{All: true}); err != nil || removed != n {
		t.Errorf("deleted %d of %d, %v", removed, n, err)
	}
	put(t, s, "after", strings.Repeat("anchor ", 9000))
}

// Of an item that was deleted, replaced or swept nothing is left in the files.
func TestSQLiteErases(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(t *testing.T, s *sqlstore.Store, planted longterm.Item) error{
		"deleted": func(t *testing.T, s *sqlstore.Store, _ longterm.Item) error {
			t.Helper()
			n, err := s.Delete(t.Context(), longterm.Place{Tenant: "acme"}, longterm.Deletion{Filter: longterm.Filter{Within: longterm.Scope{Subject: "plantedsubject"}}})
			if err == nil && n != 1 {
				t.Errorf("%d were deleted", n)
			}
			return err
		},
		"replaced": func(t *testing.T, s *sqlstore.Store, planted longterm.Item) error {
			t.Helper()
			return s.Write(t.Context(), longtermtest.Place("c"), []longterm.Item{{ID: planted.ID, Text: "new"}})
		},
		"swept": func(t *testing.T, s *sqlstore.Store, _ longterm.Item) error {
			t.Helper()
			_, err := s.Sweep(t.Context(), 10)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { erases(t, remove) })
	}
}

// erases plants an item, has it removed, and looks for it in the files.
func erases(t *testing.T, remove func(*testing.T, *sqlstore.Store, longterm.Item) error) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, sqlstore.Config{Where: filepath.Join(dir, "memory.db")})
	planted := longterm.Item{
		ID: "a", Text: "plantedtext and more", Scope: longterm.Scope{Subject: "plantedsubject"}, Fields: longterm.Fields{"plantedname": "plantedvalue"},
		Tags: []string{"plantedtag"}, Source: longterm.Source{Document: "planteddocument"}, Expires: longtermtest.At(1),
	}
	var items []longterm.Item
	for i := range 200 {
		items = append(items, longterm.Item{ID: fmt.Sprint("o", i), Text: fmt.Sprintf("another text %d with crates", i)})
	}
	if err := s.Write(t.Context(), longtermtest.Place("c"), append(items, planted)); err != nil {
		t.Fatal(err)
	}
	left := func() (found []string) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"lantedtext", "plantedsubject", "plantedname", "plantedvalue", "plantedtag", "planteddocument"} {
				if bytes.Contains(data, []byte(word)) {
					found = append(found, f.Name()+": "+word)
				}
			}
		}
		return found
	}
	if len(left()) == 0 {
		t.Fatal("the files do not show what was planted: this test looks in the wrong place")
	}
	if err := remove(t, s, planted); err != nil {
		t.Fatal(err)
	}
	if found := left(); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
}

// While something is read, what was removed stays in SQLite's log; the next sweep takes it out, also if it finds nothing to remove.
func TestSQLiteErasesLater(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "memory.db")
	s := open(t, sqlstore.Config{Where: place, Timeout: 2 * time.Second})
	put(t, s, "a", "plantedtext")
	inLog := func() bool {
		data, err := os.ReadFile(place + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(data, []byte("plantedtext"))
	}
	if !inLog() {
		t.Fatal("the log does not show what was planted: this test looks in the wrong place")
	}
	db, err := sql.Open("sqlite", place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	reader, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM longshore_memory").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Delete(t.Context(), longtermtest.Place("c"), longterm.Deletion{IDs: []string{"a"}}); err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	if !inLog() {
		t.Fatal("the reader was not in the way: this test shows nothing")
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(t.Context(), 10); err != nil || n != 0 {
		t.Fatalf("%d, %v", n, err)
	}
	if inLog() {
		t.Error("it is still in the log")
	}
}

// What was written is there for the next process, and a file of a newer version is left alone.
func TestReopen(t *testing.T) {
	each(t, func(t *testing.T, place func(*testing.T) string) {
		where := place(t)
		first := open(t, sqlstore.Config{Where: where})
		put(t, first, "a", "the anchor")
		second := open(t, sqlstore.Config{Where: where})
		found, err := second.Search(t.Context(), longtermtest.Place("c"), longterm.Search{Text: "anchors"})
		if err != nil || len(found.Hits) != 1 {
			t.Errorf("%+v, %v", found, err)
		}
		if err := second.Exec(t.Context(), "UPDATE longshore_memory_version SET version = 99"); err != nil {
			t.Fatal(err)
		}
		third := open(t, sqlstore.Config{Where: where})
		if _, err := third.Stats(t.Context(), "acme"); err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("%v", err)
		}
	})
}

// A PostgreSQL that is away, or does not answer, costs the timeout and no more; the store works as soon as it is there.
func TestPostgresAway(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	_, port, _ := net.SplitHostPort(silent.Addr().String())
	for name, where := range map[string]string{
		"silent": "postgres://user:planted-password@127.0.0.1:" + port + "/db?sslmode=disable", "gone": "postgres://user:planted-password@" + "127.0.0.1:1/db?sslmode=disable",
	} {
		s, at := open(t, sqlstore.Config{Where: where, Timeout: 300 * time.Millisecond}), longtermtest.Place("c")
		began := time.Now()
		_, readErr := s.Read(t.Context(), at, []string{"a"})
		_, searchErr := s.Search(t.Context(), at, longterm.Search{Text: "a"})
		_, deleteErr := s.Delete(t.Context(), at, longterm.Deletion{All: true})
		_, sweepErr := s.Sweep(t.Context(), 1)
		for call, err := range map[string]error{"write": s.Write(t.Context(), at, []longterm.Item{{ID: "a"}}), "read": readErr, "search": searchErr, "delete": deleteErr, "sweep": sweepErr} {
			if !errors.Is(err, longterm.ErrUnavailable) || strings.Contains(err.Error(), "planted-password") {
				t.Errorf("%s, %s: %v", name, call, err)
			}
		}
		if took := time.Since(began); took > soon {
			t.Errorf("%s: five calls took %v", name, took)
		}
	}
}

// A lock that another session holds ends a call at its timeout, and connections that the server ends are made anew.
func TestPostgresLockedAndBack(t *testing.T) {
	t.Parallel()
	server := postgrestest.Open(t)
	if server == nil {
		return
	}
	where := server.URL("longshore", server.Database(t))
	s := open(t, sqlstore.Config{Where: where, Timeout: 2 * time.Second})
	put(t, s, "before", "anchor")
	db, err := sql.Open("pgx", where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	lock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.ExecContext(t.Context(), "LOCK TABLE longshore_memory"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = s.Write(t.Context(), longtermtest.Place("c"), []longterm.Item{{ID: "during"}})
	if took := time.Since(began); !errors.Is(err, longterm.ErrUnavailable) || took > soon {
		t.Errorf("%v after %v", err, took)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	const kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
	if _, err := db.ExecContext(t.Context(), kill); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for {
		items, err := s.Read(ctx, longtermtest.Place("c"), []string{"before", "during"})
		if err == nil && len(items) == 1 {
			return
		}
		if ctx.Err() != nil || err != nil && !errors.Is(err, longterm.ErrUnavailable) {
			t.Fatalf("%+v, %v", items, err)
		}
	}
}

// Two workers that remove the same expired items at the same time count them once: what a tenant has stays right.
func TestSweepsOfTwoWorkers(t *testing.T) {
	t.Parallel()
	server := postgrestest.Open(t)
	if server == nil {
		return
	}
	where, at := server.URL("longshore", server.Database(t)), longtermtest.Place("c")
	workers := []*sqlstore.Store{open(t, sqlstore.Config{Where: where, Timeout: soon}), open(t, sqlstore.Config{Where: where, Timeout: soon})}
	var items []longterm.Item
	for i := range 5 {
		items = append(items, longterm.Item{ID: fmt.Sprint("old", i), Text: "anchor", Expires: longtermtest.At(1)}, longterm.Item{ID: fmt.Sprint("new", i), Text: "anchor"})
	}
	if err := workers[0].Write(t.Context(), at, items); err != nil {
		t.Fatal(err)
	}
	if _, err := workers[1].Stats(t.Context(), at.Tenant); err != nil { // it has looked at the tables
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	lock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback() }()
	if _, err := lock.ExecContext(t.Context(), "SELECT 1 FROM longshore_memory FOR UPDATE"); err != nil { // both find the items, and wait
		t.Fatal(err)
	}
	type swept struct {
		n   int
		err error
	}
	done := make(chan swept, len(workers))
	for _, w := range workers {
		go func() {
			n, err := w.Sweep(t.Context(), 100)
			done <- swept{n, err}
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for waiting := 0; waiting < len(workers); {
		const blocked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
		if err := db.QueryRowContext(ctx, blocked).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for range workers {
		s := <-done
		if s.err != nil {
			t.Error(s.err)
		}
		total += s.n
	}
	if stats, err := workers[0].Stats(t.Context(), at.Tenant); err != nil || total != 5 || stats.Items != 5 || stats.Bytes != 5*items[1].Size() {
		t.Errorf("swept %d, left %+v, %v", total, stats, err)
	}
}
