package sqlstore

import (
	"context"

	"github.com/longshore-run/longshore/messages/database"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// What one transaction removes at most. SQLite's log needs as much space as what is removed: a disk that is nearly full has room for little.
const (
	deleted      = 500     // items
	deletedBytes = 1 << 20 // of their texts
)

// Delete implements longterm.Writer. Each 500 items, of a MiB in SQLite, are a transaction.
func (st *Store) Delete(ctx context.Context, at longterm.Place, d longterm.Deletion) (int, error) {
	d, err := d.Check(at)
	if err != nil {
		return 0, err
	}
	w := in(at, &d.Filter)
	if len(d.IDs) > 0 {
		w.add("m.id IN "+marks(len(d.IDs)), anys(d.IDs)...)
	}
	for total, most := 0, deleted; ; {
		more, n, err := st.deleteSome(ctx, at.Tenant, w, most)
		total += n
		if err != nil || !more {
			return total, err
		}
		most = min(deleted, 2*n+1) // those that were too many are not read again and again
	}
}

// deleteSome removes the first items that meet conditions. It reports whether there are more, and how many it removed.
func (st *Store) deleteSome(ctx context.Context, tenant string, w *where, most int) (more bool, n int, err error) {
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return false, 0, err
	}
	err = st.change(ctx, tenant, func(t *tx) error {
		rows, err := t.find(ctx, w, most)
		if err != nil {
			return err
		}
		some := rows
		if st.db.Kind == database.SQLite {
			some = rows[:fitting(rows)]
		}
		more = len(rows) == most || len(some) < len(rows)
		n, err = t.remove(ctx, some)
		return err
	})
	if err != nil {
		return false, 0, end(err) // nothing of it was removed
	}
	return more, n, end(st.erase(ctx, n))
}

// fitting is how many of the first rows one transaction removes: one at least.
func fitting(rows []row) int {
	size := int64(0)
	for i, r := range rows {
		if size += r.size; size > deletedBytes && i > 0 {
			return i
		}
	}
	return len(rows)
}

// erase takes what was removed out of SQLite's log, so that it is no longer in any file. While something is read that is not possible: then the
// next removal or sweep does it.
func (st *Store) erase(ctx context.Context, removed int) error {
	if st.db.Kind != database.SQLite || removed == 0 && !st.unerased.Load() {
		return nil
	}
	var busy, frames, moved int
	err := st.db.Writes.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	st.unerased.Store(err != nil || busy != 0)
	return err
}

// Sweep implements longterm.Keeper.
func (st *Store) Sweep(ctx context.Context, most int) (n int, err error) {
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return 0, err
	}
	err = st.db.Transaction(ctx, st.db.Writes, func(dt *database.Tx) error {
		n, err = (&tx{dt, st}).sweep(ctx, "", max(most, 0))
		return err
	})
	if err == nil {
		err = st.erase(ctx, n)
	}
	return n, end(err)
}

// sweep removes what has expired, of one tenant or of all.
func (t *tx) sweep(ctx context.Context, tenant string, most int) (int, error) {
	w := &where{}
	w.add("m.expires <= ?", t.st.cfg.Now().UnixMicro())
	if tenant != "" {
		w.add("m.tenant = ?", tenant)
	}
	rows, err := t.find(ctx, w, most)
	if err != nil {
		return 0, err
	}
	return t.remove(ctx, rows)
}

// Stats implements longterm.Keeper.
func (st *Store) Stats(ctx context.Context, tenant string) (s longterm.Stats, err error) {
	if err := strict.CheckToken("tenant", tenant); err != nil {
		return s, err
	}
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return s, err
	}
	err = st.db.Read(ctx, func(ctx context.Context, dt *database.Tx) error {
		s, err = (&tx{dt, st}).stats(ctx, tenant)
		return err
	})
	return s, end(err)
}

func (t *tx) stats(ctx context.Context, tenant string) (s longterm.Stats, err error) {
	err = t.Each(ctx, func(scan func(...any) error) error {
		var c longterm.CollectionStats
		err := scan(&c.Name, &c.Items, &c.Bytes)
		s.Add(c)
		return err
	}, "SELECT collection, items, bytes FROM longshore_memory_usage WHERE tenant = ? ORDER BY collection", tenant)
	return s, err
}
