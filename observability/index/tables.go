package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages/database"
)

// schema is the version of the tables and of what is projected into them. Tables of an older one are changed if changes says
// how, and else made again from EVENTS, which may hold less than they did.
const schema = 2

// changes are the statements that make the tables of a version those of the next.
func changes() map[int64][]string {
	return map[int64][]string{
		1: { // runs of version 1 have no parent
			`ALTER TABLE longshore_runs ADD COLUMN parent TEXT NOT NULL DEFAULT ''`,
			indexOfParents,
		},
	}
}

const indexOfParents = `CREATE INDEX longshore_runs_parent ON longshore_runs (tenant, parent, first)`

// errNewer means that a newer program keeps the index.
var errNewer = errors.New("the index was made by a newer version of longshore")

// tables are all. Times are microseconds since 1970. What is in both databases means the same.
func tables() []string {
	return []string{
		`CREATE TABLE longshore_runs (
			tenant TEXT NOT NULL, id TEXT NOT NULL,
			status TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, session TEXT NOT NULL, priority TEXT NOT NULL,
			labels TEXT NOT NULL, input TEXT NOT NULL, waits TEXT NOT NULL, code TEXT NOT NULL, error TEXT NOT NULL, summary TEXT NOT NULL,
			words TEXT NOT NULL,
			steps BIGINT NOT NULL, model_calls BIGINT NOT NULL, tool_calls BIGINT NOT NULL, tool_errors BIGINT NOT NULL,
			tokens BIGINT NOT NULL, tokens_detail TEXT NOT NULL, cost DOUBLE PRECISION NOT NULL, unpriced BIGINT NOT NULL,
			queued_at BIGINT, started_at BIGINT, finished_at BIGINT, began_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
			took BIGINT, first BIGINT NOT NULL, last BIGINT NOT NULL, fold TEXT NOT NULL,
			parent TEXT NOT NULL DEFAULT '',
			PRIMARY KEY (tenant, id))`,
		`CREATE INDEX longshore_runs_first ON longshore_runs (tenant, first)`,
		`CREATE INDEX longshore_runs_updated ON longshore_runs (tenant, updated_at)`,
		`CREATE INDEX longshore_runs_status ON longshore_runs (tenant, status, first)`,
		`CREATE INDEX longshore_runs_agent ON longshore_runs (tenant, agent, first)`,
		`CREATE INDEX longshore_runs_session ON longshore_runs (tenant, session, first)`,
		indexOfParents,
		`CREATE INDEX longshore_runs_finished ON longshore_runs (finished_at)`,
		`CREATE TABLE longshore_labels (
			tenant TEXT NOT NULL, run TEXT NOT NULL, k TEXT NOT NULL, v TEXT NOT NULL, PRIMARY KEY (tenant, run, k))`,
		`CREATE INDEX longshore_labels_value ON longshore_labels (tenant, k, v)`,
		`CREATE TABLE longshore_steps (
			tenant TEXT NOT NULL, run TEXT NOT NULL, id TEXT NOT NULL, step BIGINT NOT NULL,
			status TEXT NOT NULL, model TEXT NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL,
			model_calls BIGINT NOT NULL, model_millis BIGINT NOT NULL, tokens BIGINT NOT NULL,
			cost DOUBLE PRECISION NOT NULL, unpriced BIGINT NOT NULL,
			started_at BIGINT, ended_at BIGINT, tools TEXT NOT NULL, fold TEXT NOT NULL,
			PRIMARY KEY (tenant, run, id))`,
		`CREATE TABLE longshore_tools (
			tenant TEXT NOT NULL, run TEXT NOT NULL, step TEXT NOT NULL, tool TEXT NOT NULL,
			calls BIGINT NOT NULL, errors BIGINT NOT NULL, millis BIGINT NOT NULL,
			PRIMARY KEY (tenant, run, step, tool))`,
		`CREATE TABLE longshore_index (
			one BIGINT PRIMARY KEY, version BIGINT NOT NULL, epoch BIGINT NOT NULL,
			stream TEXT NOT NULL, position BIGINT NOT NULL, as_of BIGINT NOT NULL)`,
	}
}

// tableNames are all, but that of the position.
func tableNames() []string {
	return []string{"longshore_tools", "longshore_steps", "longshore_labels", "longshore_runs"}
}

// head is where the index is. It changes only by compare-and-set.
type head struct {
	epoch    int64  // of the rows: a rebuild makes another one
	stream   string // that they are of; empty: none yet
	position uint64 // of the newest event in them
	asOf     int64  // when that was stored
}

// prepare makes the tables, changes those of an older version, or makes them again. It reports whether rows were given up.
func (d *projection) prepare(ctx context.Context) (again bool, err error) {
	err = d.transaction(ctx, d.Writes, func(t *tx) error {
		if d.Kind == database.Postgres {
			if _, err := t.Exec(ctx, "SELECT pg_advisory_xact_lock(?)", int64(lockTables)); err != nil {
				return err
			}
		}
		there, err := t.Has(ctx, "longshore_index")
		if err != nil {
			return err
		}
		epoch := int64(1)
		if there {
			var version int64
			if err := t.One(ctx, []any{&version, &epoch}, "SELECT version, epoch FROM longshore_index"); err != nil {
				return err
			}
			switch {
			case version == schema:
				return nil
			case version > schema:
				return errNewer
			case len(changes()[version]) > 0:
				return t.change(ctx, version)
			}
			again = true
			epoch++
			for _, name := range append(tableNames(), "longshore_index") {
				if _, err := t.Exec(ctx, "DROP TABLE IF EXISTS "+name); err != nil {
					return err
				}
			}
		}
		for _, s := range tables() {
			if _, err := t.Exec(ctx, s); err != nil {
				return err
			}
		}
		_, err = t.Exec(ctx, "INSERT INTO longshore_index (one, version, epoch, stream, position, as_of) VALUES (1, ?, ?, '', 0, 0)", schema, epoch)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("make the tables of the index: %w", err)
	}
	return again, nil
}

// change makes the tables of an older version those of this one. Their rows stay.
func (t *tx) change(ctx context.Context, version int64) error {
	for ; version < schema; version++ {
		for _, s := range changes()[version] {
			if _, err := t.Exec(ctx, s); err != nil {
				return fmt.Errorf("change the tables of version %d: %w", version, err)
			}
		}
	}
	_, err := t.Exec(ctx, "UPDATE longshore_index SET version = ?", schema)
	return err
}

// head reads where the index is.
func (t *tx) head(ctx context.Context) (head, error) {
	var (
		h        head
		version  int64
		position int64
	)
	err := t.One(ctx, []any{&version, &h.epoch, &h.stream, &position, &h.asOf}, "SELECT version, epoch, stream, position, as_of FROM longshore_index")
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return h, errors.New("the index has no position")
	case err != nil:
		return h, err
	case version > schema:
		return h, errNewer
	case version < schema:
		return h, errors.New("the index is of an older version")
	}
	h.position = uint64(max(position, 0))
	return h, nil
}

// move sets the position of the index if it is still at from.
func (t *tx) move(ctx context.Context, from, to head) error {
	n, err := t.Exec(ctx, `UPDATE longshore_index SET epoch = ?, stream = ?, position = ?, as_of = ?
		WHERE one = 1 AND version = ? AND epoch = ? AND stream = ? AND position = ?`,
		to.epoch, to.stream, place(to.position), to.asOf, schema, from.epoch, from.stream, place(from.position))
	if err == nil && n != 1 {
		err = errMoved
	}
	return err
}

// errMoved means that another process has applied events, or started a rebuild.
var errMoved = errors.New("another process has moved the index")
