package sqlstore

import (
	"context"

	"github.com/longshore-run/longshore/messages/database"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// Read implements longterm.Reader.
func (st *Store) Read(ctx context.Context, at longterm.Place, ids []string) ([]longterm.Item, error) {
	if err := at.Check(); err != nil {
		return nil, err
	}
	if err := longterm.CheckIDs(ids); err != nil {
		return nil, err
	}
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return nil, err
	}
	var items []longterm.Item
	err = st.db.Read(ctx, func(ctx context.Context, dt *database.Tx) error {
		items, err = (&tx{dt, st}).read(ctx, at, ids)
		return err
	})
	return items, end(err)
}

// read returns items in the order of their ids.
func (t *tx) read(ctx context.Context, at longterm.Place, ids []string) ([]longterm.Item, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	byID := map[string]longterm.Item{}
	w := in(at, &longterm.Filter{}).alive(t.st.cfg.Now())
	w.add("m.id IN "+marks(len(ids)), anys(ids)...)
	err := t.Each(ctx, func(row func(...any) error) error {
		it, err := scan(row)
		byID[it.ID] = it
		return err
	}, "SELECT "+columns+" FROM longshore_memory m"+w.String(), w.args...)
	if err != nil {
		return nil, err
	}
	var items []longterm.Item
	for _, id := range ids {
		if it, ok := byID[id]; ok {
			items = append(items, it.Clone())
		}
	}
	return items, nil
}

// Query implements longterm.Reader.
func (st *Store) Query(ctx context.Context, at longterm.Place, q longterm.Query) (longterm.Page, error) {
	q, after, err := q.Check(at)
	if err != nil {
		return longterm.Page{}, err
	}
	w := in(at, &q.Filter).alive(st.cfg.Now())
	if after.ID != "" {
		w.add("(m.created < ? OR m.created = ? AND m.id"+st.bytewise()+" < ?)", after.Created.UnixMicro(), after.Created.UnixMicro(), after.ID)
	}
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return longterm.Page{}, err
	}
	var items []longterm.Item
	err = st.db.Read(ctx, func(ctx context.Context, t *database.Tx) error {
		return t.Each(ctx, func(row func(...any) error) error {
			it, err := scan(row)
			items = append(items, it)
			return err
		}, "SELECT "+columns+" FROM longshore_memory m"+w.String()+" ORDER BY m.created DESC, m.id"+st.bytewise()+" DESC LIMIT ?", append(w.args, q.Limit+1)...)
	})
	if err != nil {
		return longterm.Page{}, end(err)
	}
	return longterm.MakePage(at, &q, items), end(nil)
}

// bytewise makes PostgreSQL compare ids by their bytes, whatever the collation of the database.
func (st *Store) bytewise() string {
	if st.db.Kind == database.Postgres {
		return ` COLLATE "C"`
	}
	return ""
}
