package sql

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/longshore-run/longshore/messages/strict"
)

// statement is one, with its parameters as the database takes them.
type statement struct {
	sql    string
	params []any // nil, string, int64, float64, bool or []byte
}

// Limits of a statement.
const (
	maxSQL    = 64 << 10 // bytes
	maxParams = 1000
)

// Words with which statements may begin. What a statement may do the database enforces; the words refuse, with a reason, what is
// neither a query nor a change of rows: COPY, DO, SET, PRAGMA, ATTACH, CREATE and their like.
func readWords() []string { return []string{"SELECT", "WITH", "VALUES", "TABLE", "EXPLAIN", "SHOW"} }

func writeWords() []string { return []string{"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "WITH"} }

// checkSQL says what is wrong with a statement that must begin with one of the words; empty: nothing.
func checkSQL(sql string, words []string) string {
	switch {
	case len(sql) > maxSQL:
		return fmt.Sprintf("sql: must not be longer than %d bytes", maxSQL)
	case strings.ContainsRune(sql, 0):
		return "sql: must not hold a NUL character"
	}
	word := firstWord(sql)
	if word == "" {
		return "sql: holds no statement"
	}
	if !slices.Contains(words, strings.ToUpper(word)) {
		return fmt.Sprintf("sql: must begin with %s, not with %q", strings.Join(words, ", "), strict.Shown(word))
	}
	return ""
}

// firstWord is the first word after comments and opening parentheses.
func firstWord(sql string) string {
	for {
		sql = strings.TrimLeftFunc(sql, func(r rune) bool { return r == '(' || r == '\ufeff' || unicode.IsSpace(r) })
		rest, ok := cutComment(sql)
		if !ok {
			break
		}
		sql = rest
	}
	end := strings.IndexFunc(sql, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	switch {
	case end < 0:
		return sql
	case end == 0: // some other character
		return sql[:1]
	default:
		return sql[:end]
	}
}

// cutComment cuts a comment off the beginning. One that does not end is all of the text.
func cutComment(sql string) (rest string, ok bool) {
	switch {
	case strings.HasPrefix(sql, "--"):
		_, rest, _ = strings.Cut(sql, "\n")
		return rest, true
	case strings.HasPrefix(sql, "/*"):
		_, rest, _ = strings.Cut(sql[2:], "*/")
		return rest, true
	default:
		return sql, false
	}
}

// single reports whether SQLite reads a text as one statement: its driver would run all of several, one after the other. A server of
// PostgreSQL refuses them itself.
func single(sql string) bool {
	for len(sql) > 0 {
		if rest, ok := cutComment(sql); ok {
			sql = rest
			continue
		}
		switch sql[0] {
		case '\'', '"', '`':
			sql = quoted(sql, sql[0])
		case '[':
			sql = quoted(sql, ']')
		case ';':
			return blank(sql)
		default:
			sql = sql[1:]
		}
	}
	return true
}

// quoted is what follows a quoted text or name, in which a quote that is written twice is read as the end and another beginning.
func quoted(sql string, end byte) string {
	i := strings.IndexByte(sql[1:], end)
	if i < 0 {
		return ""
	}
	return sql[i+2:]
}

// blank reports whether a text holds nothing but white space, comments and semicolons.
func blank(sql string) bool {
	for {
		sql = strings.TrimLeft(sql, "; \t\r\n\f")
		rest, ok := cutComment(sql)
		if !ok {
			return sql == ""
		}
		sql = rest
	}
}
