package sql

import (
	stdsql "database/sql"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// A statement that passes begins with one of the words after its comments, and SQLite sees one statement in it.
func FuzzStatements(f *testing.F) {
	for _, s := range []string{"SELECT 1", "/* a */ (SELECT 1)", "--\nSELECT ';'", "SELECT 1;;-- x", "SELECT [;] FROM `;`", "/*/ SELECT", "'", "\ufeffSELECT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		one := single(sql)
		if checkSQL(sql, readWords()) != "" {
			return
		}
		word := strings.ToUpper(firstWord(sql))
		if !slices.Contains(readWords(), word) || len(sql) > maxSQL {
			t.Errorf("%q passes, and begins with %q", sql, word)
		}
		if before, after, found := strings.Cut(sql, ";"); one && found && !strings.ContainsAny(before, "'\"`[-/") && !blank(after) {
			t.Errorf("%q is several statements", sql)
		}
	})
}

// What hides between comments and quotes is never a second statement that SQLite would run, and what they hold is not taken for one.
func FuzzCommentsAndQuotes(f *testing.F) {
	for _, s := range [][2]string{
		{"'", "'"},
		{"/*", "*/"},
		{"--", "\n"},
		{`"a`, `"`},
		{"[", "]"},
		{"`", "`"},
		{"'a''", "'"},
		{"/*/", "*/"},
		{"'--\n", ""},
		{"/* -- */", "--"},
		{"x'00'", ""},
		{"'\\'", "'"},
		{"[a'", "']"},
		{"--\r", "\n"},
		{"/**/ /*", ""},
		{"\"'", "\"'"},
		{";", ""},
		{"\v", "\x85"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.ContainsRune(before+after, 0) || len(before)+len(after) > 1<<10 {
			return // refused elsewhere
		}
		db, err := stdsql.Open("sqlite", ":memory:")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		statement := "SELECT 1 " + before + "; CREATE TABLE second (a); " + after
		if checkSQL(statement, readWords()) == "" && single(statement) {
			_, _ = db.ExecContext(t.Context(), statement)
			var tables int
			if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_schema WHERE name = 'second'").Scan(&tables); err != nil || tables != 0 {
				t.Errorf("%q passes as one statement, and SQLite runs two (%v)", statement, err)
			}
		}
		held := strings.NewReplacer("'", "''").Replace(before)
		comment := strings.ReplaceAll(after, "*/", "")
		whole := "SELECT '" + held + "' /*" + strings.TrimSuffix(comment, "*") + " */ -- " + strings.ReplaceAll(before, "\n", "") + "\n;"
		if !strings.Contains(strings.TrimSuffix(comment, "*"), "*/") && !single(whole) {
			t.Errorf("%q is refused as several statements", whole)
		}
	})
}

// What a server sends as a value is JSON, whatever it is.
func FuzzValues(f *testing.F) {
	for _, s := range []string{`{1,NULL,"a\"b"}`, `{{1,2},{3}}`, `{}`, `{,}`, `[0:1]={1}`, `\x00ff`, `{"a":1}`, "NaN", "1e999", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		types := newPgTypes()
		for _, oid := range []uint32{
			pgtype.BoolOID, pgtype.Int8OID, pgtype.Float8OID, pgtype.JSONOID, pgtype.ByteaOID, pgtype.TextOID, pgtype.NumericOID,
			pgtype.Int4ArrayOID, pgtype.TextArrayOID, pgtype.JSONBArrayOID, pgtype.ByteaArrayOID, 0,
		} {
			if out := types.value(oid, []byte(in)); !json.Valid(out) {
				t.Errorf("%q of type %d is %s", in, oid, out)
			}
		}
	})
}

// What a model sends as parameters is values or refused.
func FuzzParams(f *testing.F) {
	for _, s := range []string{`1`, `[1,"a",null]`, `{"base64":"AA=="}`, `1e999`, `"\u0000"`, `[[1]]`, `-0`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		values, wrong := parseParams([]json.RawMessage{json.RawMessage(in)})
		if wrong != "" {
			return
		}
		for _, v := range values {
			if s := string(pgParam(v)); strings.ContainsRune(s, 0) {
				t.Errorf("%q becomes %q", in, s)
			}
		}
		_, _ = sqliteParams(values)
	})
}
