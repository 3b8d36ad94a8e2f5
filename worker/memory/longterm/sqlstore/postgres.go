package sqlstore

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages/database"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// ownColumns are the columns that PostgreSQL alone has, and the parameters of a row with them.
func (st *Store) ownColumns() (names, one string) {
	n := strings.Count(columns, ",") + 4
	if st.db.Kind != database.Postgres {
		return "", marks(n)
	}
	one = strings.TrimSuffix(marks(n), ")") + ", ?::tsvector"
	if st.cfg.Language != "" {
		one += " || to_tsvector(?::regconfig, ?)"
	}
	if names = ", words"; st.pgvector() {
		names += ", embedding"
		one += ", ?::vector"
	}
	return names, one + ")"
}

// own are their values.
func (st *Store) own(it *longterm.Item) (values []any) {
	if st.db.Kind != database.Postgres {
		return nil
	}
	values = append(values, tsvector(it.Text))
	if st.cfg.Language != "" {
		values = append(values, st.cfg.Language, it.Text)
	}
	if st.pgvector() {
		values = append(values, literal(it.Vector))
	}
	return values
}

// Bounds of what PostgreSQL keeps of a word in a tsvector.
const (
	maxPosition  = 16383
	maxPositions = 255
)

// tsvector is the stems of a text with their places, as PostgreSQL writes them.
func tsvector(text string) string {
	places := map[string][]int{}
	var order []string
	for i, w := range longterm.Words(text) {
		s := longterm.Stem(w)
		if places[s] == nil {
			order = append(order, s)
		}
		if len(places[s]) < maxPositions {
			places[s] = append(places[s], min(i+1, maxPosition))
		}
	}
	var b strings.Builder
	for _, s := range order {
		b.WriteString(quoted(s))
		separator := byte(':')
		for _, at := range slices.Compact(places[s]) {
			b.WriteByte(separator)
			b.WriteString(strconv.Itoa(at))
			separator = ','
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// quoted is a lexeme that stands for itself.
func quoted(lexeme string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(lexeme) + "'"
}

// lexemes finds the items with some of the stems, or of the words as the configured language has them.
func (t *tx) lexemes(ctx context.Context, w *where, text string, stems []string) (docs []longterm.Doc, err error) {
	if t.st.cfg.Language != "" {
		err := t.Each(ctx, func(scan func(...any) error) error {
			var lexeme string
			if err := scan(&lexeme); err != nil {
				return err
			}
			if !slices.Contains(stems, lexeme) && len(stems) < 2*longterm.MaxWords {
				stems = append(stems, lexeme)
			}
			return nil
		}, "SELECT unnest(tsvector_to_array(to_tsvector(?::regconfig, ?)))", t.st.cfg.Language, strings.Join(longterm.SearchWords(text), " "))
		if err != nil {
			return nil, err
		}
	}
	alternatives, index := make([]string, len(stems)), map[string]int{}
	for i, s := range stems {
		alternatives[i], index[s] = quoted(s), i
	}
	query := strings.Join(alternatives, " | ")
	statement := `SELECT c.id, c.long, u.lexeme, cardinality(u.positions) FROM (
			SELECT m.id, m.words, length(m.words) AS long FROM longshore_memory m` + w.String() + ` AND m.words @@ ?::tsquery
			ORDER BY ts_rank(m.words, ?::tsquery) DESC, m.id LIMIT ?) c, unnest(c.words) AS u
		WHERE u.lexeme IN ` + marks(len(stems)) + ` ORDER BY c.id`
	err = t.Each(ctx, func(scan func(...any) error) error {
		var id, lexeme string
		var long, n int
		if err := scan(&id, &long, &lexeme, &n); err != nil {
			return err
		}
		if len(docs) == 0 || docs[len(docs)-1].ID != id {
			docs = append(docs, longterm.Doc{ID: id, Counts: make([]int, len(stems)), Long: long})
		}
		docs[len(docs)-1].Counts[index[lexeme]] = n
		return nil
	}, statement, slices.Concat(w.args, []any{query, query, candidates}, anys(stems))...)
	return docs, err
}
