package sqlstore

import (
	"context"
	"strings"

	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// fts finds the items of a place with some of the stems, which are words of letters and digits: in quotes they mean nothing to FTS5.
func (t *tx) fts(ctx context.Context, at longterm.Place, w *where, stems []string) (docs []longterm.Doc, err error) {
	match := `place:"` + placeWord(at) + `" AND words:("` + strings.Join(stems, `" OR "`) + `")`
	query := "SELECT m.id, m.text FROM longshore_memory_words w JOIN longshore_memory m ON m.key = w.rowid" + w.String() +
		" AND longshore_memory_words MATCH ? ORDER BY w.rank LIMIT ?"
	err = t.Each(ctx, func(scan func(...any) error) error {
		var it longterm.Item
		if err := scan(&it.ID, &it.Text); err != nil {
			return err
		}
		if d := longterm.CountWords(&it, stems); d.Counts != nil {
			docs = append(docs, d)
		}
		return nil
	}, query, append(w.args, match, candidates)...)
	return docs, err
}
