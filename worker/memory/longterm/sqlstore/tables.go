package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages/database"
)

// schema is the version of the tables. Those of a newer one are left alone.
const schema = 1

// lockTables is PostgreSQL's lock of who makes the tables: "longshom" in ASCII.
const lockTables = 0x6c6f6e6773686f6d

var errNewer = errors.New("the long-term memory was made by a newer version of longshore")

// tables are those of both databases, in words that both have but for the kinds in braces. Times are microseconds since 1970.
func tables(kind string) []string {
	all := []string{
		`CREATE TABLE longshore_memory (
			key {key}, tenant TEXT NOT NULL, collection TEXT NOT NULL, id TEXT NOT NULL,
			agent TEXT NOT NULL, session TEXT NOT NULL, subject TEXT NOT NULL, text TEXT NOT NULL, fields TEXT NOT NULL, tags TEXT NOT NULL,
			created BIGINT NOT NULL, expires BIGINT, run TEXT NOT NULL, step BIGINT NOT NULL, document TEXT NOT NULL, position BIGINT NOT NULL,
			vector {bytes}, dims BIGINT NOT NULL, model TEXT NOT NULL, sealed {bytes}, size BIGINT NOT NULL,
			UNIQUE (tenant, collection, id))`,
		`CREATE INDEX longshore_memory_created ON longshore_memory (tenant, collection, created, id)`,
		`CREATE INDEX longshore_memory_subject ON longshore_memory (tenant, subject)`,
		`CREATE INDEX longshore_memory_session ON longshore_memory (tenant, session)`,
		`CREATE INDEX longshore_memory_expires ON longshore_memory (expires)`,
		`CREATE TABLE longshore_memory_fields (item BIGINT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, number DOUBLE PRECISION, instant DOUBLE PRECISION,
			PRIMARY KEY (item, name))`,
		`CREATE TABLE longshore_memory_tags (item BIGINT NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (item, tag))`,
		`CREATE TABLE longshore_memory_usage (tenant TEXT NOT NULL, collection TEXT NOT NULL, items BIGINT NOT NULL, bytes BIGINT NOT NULL,
			PRIMARY KEY (tenant, collection))`,
		`CREATE TABLE longshore_memory_version (one BIGINT PRIMARY KEY, version BIGINT NOT NULL)`,
		fmt.Sprintf(`INSERT INTO longshore_memory_version (one, version) VALUES (1, %d)`, schema),
	}
	types := strings.NewReplacer("{key}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{bytes}", "BLOB")
	if kind == database.Postgres {
		types = strings.NewReplacer("{key}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "{bytes}", "BYTEA")
		all = append(all,
			`ALTER TABLE longshore_memory ADD COLUMN words TSVECTOR`,
			`CREATE INDEX longshore_memory_words ON longshore_memory USING gin (words)`)
	} else {
		// Its row is that of the item: where it belongs, as one word, and the stems of its text.
		all = append(all, `CREATE VIRTUAL TABLE longshore_memory_words USING fts5(place, words, content='', detail='column', tokenize="unicode61 remove_diacritics 0")`,
			`INSERT INTO longshore_memory_words (longshore_memory_words, rank) VALUES ('secure-delete', 1)`)
	}
	for i := range all {
		all[i] = types.Replace(all[i])
	}
	return all
}

// prepare makes the tables once.
func (st *Store) prepare(ctx context.Context) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ready {
		return nil
	}
	err := st.db.Transaction(ctx, st.db.Writes, func(t *database.Tx) error {
		if t.Kind() == database.Postgres {
			if _, err := t.Exec(ctx, "SELECT pg_advisory_xact_lock(?)", int64(lockTables)); err != nil {
				return err
			}
		}
		there, err := t.Has(ctx, "longshore_memory_version")
		if err != nil {
			return err
		}
		if there {
			var version int64
			if err := t.One(ctx, []any{&version}, "SELECT version FROM longshore_memory_version"); err != nil {
				return err
			}
			if version > schema {
				return errNewer
			}
			return nil
		}
		for _, s := range tables(t.Kind()) {
			if _, err := t.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make the tables of long-term memory: %w", err)
	}
	if st.db.Kind == database.Postgres {
		if st.pgv, st.filters, err = st.preparePgvector(ctx); err != nil {
			return fmt.Errorf("prepare pgvector: %w", err)
		}
	}
	st.ready = true
	return nil
}
