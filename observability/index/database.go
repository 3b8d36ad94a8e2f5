package index

import (
	"context"
	"database/sql"

	"github.com/longshore-run/longshore/messages/database"
)

// PostgreSQL's lock of who applies, and of who makes the tables: "longshor" and "longshos" in ASCII.
const (
	lockApply  = 0x6c6f6e6773686f72
	lockTables = 0x6c6f6e6773686f73
)

// maxWriters are connections to a SQLite file: one applies, another may begin anew; they wait for each other.
const maxWriters = 2

// projection is the database with the tables of the index.
type projection struct{ *database.DB }

// tx is a transaction on them.
type tx struct{ *database.Tx }

func openDatabase(where string) (*projection, error) {
	db, err := database.Open(database.Config{Where: where, What: "the index", Writers: maxWriters, Erase: true})
	if err != nil {
		return nil, err
	}
	return &projection{db}, nil
}

// transaction does something as a whole or not at all.
func (d *projection) transaction(ctx context.Context, on database.Beginner, do func(*tx) error) error {
	return d.Transaction(ctx, on, func(t *database.Tx) error { return do(&tx{t}) })
}

// read makes queries that see one state of the database, within their time.
func (d *projection) read(ctx context.Context, do func(context.Context, *tx) error) error {
	return d.Read(ctx, func(ctx context.Context, t *database.Tx) error { return do(ctx, &tx{t}) })
}

// forget takes what was erased out of the log of a SQLite file, and reports whether it did: it cannot while something is read.
func (d *projection) forget(ctx context.Context, on *sql.Conn) bool {
	if d.Kind != database.SQLite {
		return true
	}
	var busy, frames, moved int
	err := on.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	return err == nil && busy == 0
}
