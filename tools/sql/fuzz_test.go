package sql

import (
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
