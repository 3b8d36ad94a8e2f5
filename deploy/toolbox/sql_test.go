package toolbox_test

import (
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
)

// The examples of docs/tools/sql.md do what the page says.
func TestPageOfSQL(t *testing.T) {
	files, calls := examples(t, "sql.md", "yaml"), examples(t, "sql.md", "text")
	if len(files) != 2 || len(calls) != 1 {
		t.Fatalf("the page has %d files and %d plays", len(files), len(calls))
	}
	place := filepath.Join(t.TempDir(), "catalog.db")
	db, err := sql.Open("sqlite", place)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT NOT NULL, price INTEGER);
		INSERT INTO books (title, price) VALUES ('Knots', 1200), ('Sails', 2400), ('Ropes', 1500)`); err != nil {
		t.Fatal(err)
	}
	file := strings.Replace(files[0], "file: catalog.db", "file: "+place, 1)
	set := opened(t, file, "SHOP_URL=postgres://agent:s3cret-s3cret@127.0.0.1:1/shop")
	played(t, set, definition(t, files[1]), calls[0], "")
}

// A part that cannot be opened ends the start with the field and without the secret.
func TestPartsOfSQLThatAreWrong(t *testing.T) {
	for part, want := range map[string]string{
		"  sql: {}\n": "spec.sql.databases: must name 1 to 64 databases",
		"  sql: {databases: {a: {driver: sqlite, file: none.db}}}\n":                                   "spec.sql.databases.a.file: is not a file that can be read",
		"  sql: {databases: {a: {driver: postgres, dsn: nowhere}}}\n":                                  `spec.sql.databases.a.dsn: is not the name of a credential`,
		"  sql: {databases: {a: {driver: postgres, dsn: 'postgres://u:s3cret@h/d'}}}\n":                `spec.sql.databases.a.dsn: is not the name of a credential`,
		"  sql: {databases: {a: {driver: postgres, dsn: at}}}\n  credentials: {at: {env: SHOP_URL}}\n": "spec.sql.databases.a.dsn: the secret of the credential is not a URL such as",
		"  sql: {databases: {a: {driver: postgres, dsn: at, rows: -1}}}\n":                             "spec.sql.databases.a.rows: must be 1 to 10000",
		"  sql: {databases: {a: {driver: postgres, dsn: at, password: x}}}\n":                          "spec.sql.databases.a.password: ",
	} {
		file := filepath.Join(t.TempDir(), "tools.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: longshore.run/v1\nkind: Tools\nspec:\n"+part), 0o600); err != nil {
			t.Fatal(err)
		}
		s := new(settings.Worker)
		if err := settings.Load(s, []string{"NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_ENCRYPTION=off", "LONGSHORE_SCRIPT=x.yaml", "LONGSHORE_TOOLS=" + file, "SHOP_URL=mysql://u:s3cret-s3cret@h"}); err != nil {
			t.Fatal(err)
		}
		_, err := toolbox.Open(t.Context(), &s.Tools, toolbox.Needs{Log: slog.New(slog.DiscardHandler), RedisURL: s.RedisURL})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %s", part, err, want)
		}
	}
}
