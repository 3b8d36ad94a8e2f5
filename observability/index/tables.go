package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/database"
)

// schema is the version of the tables and of what is projected into them. Tables of an older one are changed if changes says
// how, and else made again from EVENTS, which may hold less than they did.
const schema = 4

// changes are the statements that make the tables of a version those of the next.
func changes() map[int64][]string {
	return map[int64][]string{
		1: { // runs of version 1 have no parent
			`ALTER TABLE longshore_runs ADD COLUMN parent TEXT NOT NULL DEFAULT ''`,
			indexOfParents,
		},
		2: append(tablesOfSearch(), // texts of version 2 are searched one by one, until they are in blocks
			indexOfCodes, `INSERT INTO longshore_loose (tenant, first) SELECT DISTINCT tenant, first FROM longshore_runs`),
		3: append(tablesOfSums(), // statistics of version 3 read runs
			`ALTER TABLE longshore_runs ADD COLUMN tools TEXT NOT NULL DEFAULT ''`,
			`DROP INDEX longshore_runs_updated`, indexOfUpdates, `DROP INDEX longshore_runs_session`, indexOfSessions, `DROP INDEX longshore_runs_parent`, indexOfParents),
	}
}

const indexOfUpdates = `CREATE INDEX longshore_runs_updated ON longshore_runs (tenant, updated_at)`

// These hold the runs that have one: most have none.
const (
	indexOfSessions = `CREATE INDEX longshore_runs_session ON longshore_runs (tenant, session, first) WHERE session <> ''`
	indexOfParents  = `CREATE INDEX longshore_runs_parent ON longshore_runs (tenant, parent, first) WHERE parent <> ''`
	indexOfCodes    = `CREATE INDEX longshore_runs_code ON longshore_runs (tenant, code, first) WHERE code <> ''`
)

// tablesOfSearch are the runs whose texts are in no block, the blocks, and which runs of a block have a piece of text.
func tablesOfSearch() []string {
	return []string{
		`CREATE TABLE longshore_loose (tenant TEXT NOT NULL, first BIGINT NOT NULL, PRIMARY KEY (tenant, first))`,
		`CREATE TABLE longshore_blocks (
			tenant TEXT NOT NULL, block BIGINT NOT NULL, made_at BIGINT NOT NULL, oldest BIGINT NOT NULL, newest BIGINT NOT NULL,
			firsts BYTEA NOT NULL, PRIMARY KEY (tenant, block))`,
		`CREATE TABLE longshore_bits (
			tenant TEXT NOT NULL, block BIGINT NOT NULL, bucket BIGINT NOT NULL, bits BYTEA NOT NULL, PRIMARY KEY (tenant, block, bucket))`,
	}
}

// errNewer means that a newer program keeps the index.
var errNewer = errors.New("the index was made by a newer version of longshore")

// tables are all. Times are microseconds since 1970. What is in both databases means the same.
func tables() []string {
	return append([]string{
		`CREATE TABLE longshore_runs (
			tenant TEXT NOT NULL, id TEXT NOT NULL,
			status TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, session TEXT NOT NULL, priority TEXT NOT NULL,
			labels TEXT NOT NULL, input TEXT NOT NULL, waits TEXT NOT NULL, code TEXT NOT NULL, error TEXT NOT NULL, summary TEXT NOT NULL,
			words TEXT NOT NULL,
			steps BIGINT NOT NULL, model_calls BIGINT NOT NULL, tool_calls BIGINT NOT NULL, tool_errors BIGINT NOT NULL,
			tokens BIGINT NOT NULL, tokens_detail TEXT NOT NULL, cost DOUBLE PRECISION NOT NULL, unpriced BIGINT NOT NULL,
			queued_at BIGINT, started_at BIGINT, finished_at BIGINT, began_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
			took BIGINT, first BIGINT NOT NULL, last BIGINT NOT NULL, fold TEXT NOT NULL,
			parent TEXT NOT NULL DEFAULT '', tools TEXT NOT NULL DEFAULT '',
			PRIMARY KEY (tenant, id))`,
		`CREATE INDEX longshore_runs_first ON longshore_runs (tenant, first)`,
		indexOfUpdates,
		`CREATE INDEX longshore_runs_status ON longshore_runs (tenant, status, first)`,
		`CREATE INDEX longshore_runs_agent ON longshore_runs (tenant, agent, first)`,
		indexOfSessions,
		indexOfParents,
		indexOfCodes,
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
		`CREATE TABLE longshore_index (
			one BIGINT PRIMARY KEY, version BIGINT NOT NULL, epoch BIGINT NOT NULL,
			stream TEXT NOT NULL, position BIGINT NOT NULL, as_of BIGINT NOT NULL)`,
	}, append(tablesOfSearch(), tablesOfSums()...)...)
}

// tableNames are those with rows of runs, the runs last.
func tableNames() []string {
	return []string{"longshore_steps", "longshore_labels", "longshore_runs"}
}

// searchNames are the tables that the search keeps beside those.
func searchNames() []string { return []string{"longshore_loose", "longshore_bits", "longshore_blocks"} }

// head is where the index is. It changes only by compare-and-set.
type head struct {
	epoch    int64  // of the rows: a rebuild makes another one
	stream   string // that they are of, or streams; empty: none yet
	position uint64 // of the newest event in them; in several streams the sum of the sequences in each
	asOf     int64  // when that was stored
	each     string // the position in several streams; empty in one
}

// at is where to continue.
func (h *head) at() events.Position {
	switch {
	case h.position == 0:
		return nil
	case h.each == "":
		return events.Position{h.position}
	}
	at, err := events.ParsePosition(h.each, strings.Count(h.each, ".")+1)
	if err != nil { // it was read before
		return nil
	}
	return at
}

// moveTo sets where to continue.
func (h *head) moveTo(at events.Position) {
	if h.position = at.Sum(); len(at) > 1 {
		h.each = at.String()
	}
}

// of is the stream as it is stored: with the position in each of several.
func (h *head) of() string {
	if h.each == "" {
		return h.stream
	}
	return h.stream + positionMark + h.each
}

const positionMark = " at "

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
			for _, name := range slices.Concat(tableNames(), searchNames(), sumNames(), []string{"longshore_index", "longshore_tools"}) {
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
	if err := t.sumUp(ctx); err != nil {
		return fmt.Errorf("add up the runs of version 3: %w", err)
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
	if h.stream, h.each, _ = strings.Cut(h.stream, positionMark); h.each != "" && h.at().Sum() != h.position {
		return h, errors.New("the position of the index cannot be read")
	}
	return h, nil
}

// move sets the position of the index if it is still at from.
func (t *tx) move(ctx context.Context, from, to head) error {
	n, err := t.Exec(ctx, `UPDATE longshore_index SET epoch = ?, stream = ?, position = ?, as_of = ?
		WHERE one = 1 AND version = ? AND epoch = ? AND stream = ? AND position = ?`,
		to.epoch, to.of(), place(to.position), to.asOf, schema, from.epoch, from.of(), place(from.position))
	if err == nil && n != 1 {
		err = errMoved
	}
	return err
}

// errMoved means that another process has applied events, or started a rebuild.
var errMoved = errors.New("another process has moved the index")

// errRebuild means that a rebuild was started here.
var errRebuild = errors.New("a rebuild of the index was started")
