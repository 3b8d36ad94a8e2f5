package database

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
)

// A connection keeps the statements that it used last, no more than a bound, and those from which rows are read are apart.
func TestStatementsAreKept(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Where: filepath.Join(t.TempDir(), "index.db"), What: "the index"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := d.Writes.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	kept := func() (texts []string) {
		err := conn.Raw(func(c any) error {
			for _, s := range c.(*keeping).kept {
				texts = append(texts, s.text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return texts
	}
	number := func(text string, args ...any) (n int) {
		t.Helper()
		if err := conn.QueryRowContext(t.Context(), text, args...).Scan(&n); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return n
	}
	exec := func(text string) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	for i := range 3 { // the values of the last time are gone
		if n := number("SELECT ?", i); n != i {
			t.Errorf("%d came back as %d", i, n)
		}
	}
	if got := kept(); len(got) != 1 || got[0] != "SELECT ?" {
		t.Errorf("kept: %q", got)
	}
	exec("CREATE TABLE a (x)")
	exec("INSERT INTO a VALUES (1), (2)")
	exec("INSERT INTO a VALUES (1), (2)")
	for range 2 { // two at once of one text, as in a question that asks while it reads
		pairs(t, conn)
	}
	if n := number("SELECT count(*) FROM a"); n != 4 {
		t.Errorf("%d rows", n)
	}
	exec("DROP TABLE a") // statements of a table that is made anew are prepared again
	exec("CREATE TABLE a (y, z)")
	if n := number("SELECT count(*) FROM a"); n != 0 {
		t.Errorf("%d rows of the new table", n)
	}
	if _, err := conn.ExecContext(t.Context(), "INSERT INTO a VALUES (1)"); err == nil {
		t.Error("a row without a column was stored")
	}
	for i := range 2 * maxStatements {
		number(fmt.Sprintf("SELECT %d", i))
	}
	got := kept()
	if len(got) != maxStatements || got[len(got)-1] != fmt.Sprintf("SELECT %d", 2*maxStatements-1) {
		t.Errorf("%d are kept, the last is %q", len(got), got[len(got)-1])
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conn.ExecContext(ended, "INSERT INTO a VALUES (1, 2)"); err == nil {
		t.Error("a statement ran although its time was over")
	}
	exec("INSERT INTO a VALUES (1, 2)")
	if n := number("SELECT count(*) FROM a"); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// pairs reads rows with a statement while rows of the same are read.
func pairs(t *testing.T, conn *sql.Conn) {
	t.Helper()
	const text = "SELECT x FROM a ORDER BY rowid"
	outer, err := conn.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	n := 0
	for outer.Next() {
		inner, err := conn.QueryContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		for inner.Next() {
			n++
		}
		if err := inner.Err(); err != nil {
			t.Error(err)
		}
		inner.Close()
	}
	if err := outer.Err(); err != nil || n != 16 {
		t.Errorf("%d pairs, want 16: %v", n, err)
	}
}
