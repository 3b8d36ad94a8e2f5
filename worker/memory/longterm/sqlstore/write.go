package sqlstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/database"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// chunk is how many rows a statement writes, or how many items one names.
const chunk = 250

// Write implements longterm.Writer.
func (st *Store) Write(ctx context.Context, at longterm.Place, items []longterm.Item) error {
	if err := at.Check(); err != nil {
		return err
	}
	now := st.cfg.Now()
	kept, err := longterm.CheckItems(items, now)
	if err != nil || len(kept) == 0 {
		return err
	}
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return err
	}
	removed := 0
	err = st.change(ctx, at.Tenant, func(t *tx) error {
		removed, err = t.write(ctx, at, kept)
		return err
	})
	if err == nil && removed > 0 {
		err = st.erase(ctx, removed)
	}
	if err == nil {
		err = st.index(ctx, kept)
	}
	return end(err)
}

// change does something to the items of a tenant as a whole, one change at a time.
func (st *Store) change(ctx context.Context, tenant string, do func(*tx) error) error {
	return st.db.Transaction(ctx, st.db.Writes, func(dt *database.Tx) error {
		t := &tx{dt, st}
		if t.Kind() == database.Postgres {
			sum := sha256.Sum256([]byte("longshore memory " + tenant))
			if _, err := t.Exec(ctx, "SELECT pg_advisory_xact_lock(?)", int64(binary.BigEndian.Uint64(sum[:8]))); err != nil {
				return err
			}
		}
		return do(t)
	})
}

// tx is a transaction of a store.
type tx struct {
	*database.Tx

	st *Store
}

// row is an item that is kept: what it takes to remove it.
type row struct {
	key  int64
	at   longterm.Place
	size int64
	text string // of SQLite, whose index of words has to be told what it forgets
}

// write writes items, and returns how many others it removed for them.
func (t *tx) write(ctx context.Context, at longterm.Place, items []longterm.Item) (removed int, err error) {
	replaced, err := t.rows(ctx, at, items)
	if err != nil {
		return 0, err
	}
	if err := t.fits(ctx, at, items, replaced); err != nil {
		if removed, err = t.sweep(ctx, at.Tenant, max(len(items), chunk)); err != nil {
			return 0, err
		}
		if replaced, err = t.rows(ctx, at, items); err != nil {
			return 0, err
		}
		if err = t.fits(ctx, at, items, replaced); err != nil {
			return 0, err
		}
	}
	n, err := t.remove(ctx, replaced)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(items, chunk) {
		if err := t.insert(ctx, at, part); err != nil {
			return 0, err
		}
	}
	var bytes int64
	for i := range items {
		bytes += items[i].Size()
	}
	return removed + n, t.count(ctx, at, int64(len(items)), bytes)
}

// rows are those of items that are kept already.
func (t *tx) rows(ctx context.Context, at longterm.Place, items []longterm.Item) (rows []row, err error) {
	for part := range slices.Chunk(items, chunk) {
		args := []any{at.Tenant, at.Collection}
		for i := range part {
			args = append(args, part[i].ID)
		}
		found, err := t.find(ctx, &where{[]string{"m.tenant = ?", "m.collection = ?", "m.id IN " + marks(len(part))}, args}, len(part))
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// find returns rows that meet conditions, so many at most.
func (t *tx) find(ctx context.Context, w *where, most int) (rows []row, err error) {
	text := "''"
	if t.Kind() == database.SQLite {
		text = "m.text"
	}
	err = t.Each(ctx, func(scan func(...any) error) error {
		var r row
		err := scan(&r.key, &r.at.Tenant, &r.at.Collection, &r.size, &r.text)
		rows = append(rows, r)
		return err
	}, "SELECT m.key, m.tenant, m.collection, m.size, "+text+" FROM longshore_memory m"+w.String()+" LIMIT ?", append(w.args, most)...)
	return rows, err
}

// fits returns a *longterm.QuotaError if a write is too much.
func (t *tx) fits(ctx context.Context, at longterm.Place, items []longterm.Item, replaced []row) error {
	if t.st.cfg.Limits == (longterm.Limits{}) {
		return nil
	}
	stats, err := t.stats(ctx, at.Tenant)
	if err != nil {
		return err
	}
	was := longterm.CollectionStats{Items: stats.Items, Bytes: stats.Bytes}
	would := was
	for i := range items {
		would.Items++
		would.Bytes += items[i].Size()
	}
	for _, r := range replaced {
		would.Items--
		would.Bytes -= r.size
	}
	return t.st.cfg.Limits.Exceeded(at.Tenant, was, would)
}

func (t *tx) insert(ctx context.Context, at longterm.Place, items []longterm.Item) error {
	var rows []any
	for i := range items {
		of, err := args(&items[i])
		if err != nil {
			return err
		}
		rows = append(append(append(rows, at.Tenant, at.Collection), of...), items[i].Size())
		rows = append(rows, t.st.own(&items[i])...)
	}
	keys := map[string]int64{}
	names, one := t.st.ownColumns()
	err := t.Each(ctx, func(scan func(...any) error) error {
		var id string
		var key int64
		err := scan(&id, &key)
		keys[id] = key
		return err
	}, "INSERT INTO longshore_memory (tenant, collection, "+columns+", size"+names+") VALUES "+
		strings.TrimSuffix(strings.Repeat(one+",", len(items)), ",")+" RETURNING id, key", rows...)
	if err != nil {
		return err
	}
	var fields, tags, words [][]any
	for i := range items {
		it := &items[i]
		key := keys[it.ID]
		for _, name := range slices.Sorted(maps.Keys(it.Fields)) {
			value := it.Fields[name]
			var number, instant any
			if n, ok := longterm.Number(value); ok {
				number = n
			}
			if n, ok := longterm.Instant(value); ok {
				instant = n
			}
			fields = append(fields, []any{key, name, longterm.Encode(value), number, instant})
		}
		for _, tag := range it.Tags {
			tags = append(tags, []any{key, tag})
		}
		if t.Kind() == database.SQLite {
			words = append(words, []any{key, placeWord(at), stems(it.Text)})
		}
	}
	if err := t.all(ctx, "INSERT INTO longshore_memory_fields (item, name, value, number, instant) VALUES ", fields); err != nil {
		return err
	}
	if err := t.all(ctx, "INSERT INTO longshore_memory_tags (item, tag) VALUES ", tags); err != nil {
		return err
	}
	return t.all(ctx, "INSERT INTO longshore_memory_words (rowid, place, words) VALUES ", words)
}

// all inserts rows, a chunk at a time.
func (t *tx) all(ctx context.Context, statement string, rows [][]any) error {
	for part := range slices.Chunk(rows, chunk) {
		one := marks(len(part[0]))
		if _, err := t.Exec(ctx, statement+strings.TrimSuffix(strings.Repeat(one+",", len(part)), ","), slices.Concat(part...)...); err != nil {
			return err
		}
	}
	return nil
}

// placeWord is where an item belongs, as one word of an index that all have in common.
func placeWord(at longterm.Place) string {
	sum := sha256.Sum256([]byte(at.Tenant + "." + at.Collection))
	return "p" + hex.EncodeToString(sum[:12])
}

// stems are the stems of a text as an index keeps them.
func stems(text string) string {
	words := longterm.Words(text)
	for i, w := range words {
		words[i] = longterm.Stem(w)
	}
	return strings.Join(words, " ")
}

// count changes what a collection has.
func (t *tx) count(ctx context.Context, at longterm.Place, items, bytes int64) error {
	_, err := t.Exec(ctx, `INSERT INTO longshore_memory_usage (tenant, collection, items, bytes) VALUES (?, ?, ?, ?)
		ON CONFLICT (tenant, collection) DO UPDATE SET items = longshore_memory_usage.items + excluded.items, bytes = longshore_memory_usage.bytes + excluded.bytes`,
		at.Tenant, at.Collection, items, bytes)
	return err
}

// remove removes rows with all that belongs to them, and returns how many: another process may have swept some of them since they were found.
func (t *tx) remove(ctx context.Context, rows []row) (n int, err error) {
	gone := map[longterm.Place]longterm.CollectionStats{}
	for part := range slices.Chunk(rows, chunk) {
		removed, err := t.removeSome(ctx, part)
		if err != nil {
			return 0, err
		}
		n += len(removed)
		for _, r := range removed {
			c := gone[r.at]
			c.Items++
			c.Bytes += r.size
			gone[r.at] = c
		}
	}
	// In one order, so that two processes do not wait for each other.
	for _, at := range slices.SortedFunc(maps.Keys(gone), func(a, b longterm.Place) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Collection, b.Collection))
	}) {
		if err := t.count(ctx, at, -gone[at].Items, -gone[at].Bytes); err != nil {
			return 0, err
		}
	}
	if len(gone) > 0 {
		_, err = t.Exec(ctx, "DELETE FROM longshore_memory_usage WHERE items <= 0")
	}
	return n, err
}

// removeSome removes a chunk of rows and returns those that were still kept.
func (t *tx) removeSome(ctx context.Context, part []row) (removed []row, err error) {
	byKey, keys := map[int64]row{}, make([]any, len(part))
	for i, r := range part {
		byKey[r.key], keys[i] = r, r.key
	}
	err = t.Each(ctx, func(scan func(...any) error) error {
		var key int64
		err := scan(&key)
		removed = append(removed, byKey[key])
		return err
	}, "DELETE FROM longshore_memory WHERE key IN "+marks(len(keys))+" RETURNING key", keys...)
	if err != nil || len(removed) == 0 {
		return nil, err
	}
	if t.Kind() == database.SQLite {
		words := make([][]any, len(removed))
		for i, r := range removed {
			words[i] = []any{"delete", r.key, placeWord(r.at), stems(r.text)}
		}
		if err := t.all(ctx, "INSERT INTO longshore_memory_words (longshore_memory_words, rowid, place, words) VALUES ", words); err != nil {
			return nil, err
		}
	}
	for _, table := range []string{"longshore_memory_fields", "longshore_memory_tags"} {
		if _, err := t.Exec(ctx, "DELETE FROM "+table+" WHERE item IN "+marks(len(keys)), keys...); err != nil {
			return nil, err
		}
	}
	return removed, nil
}
