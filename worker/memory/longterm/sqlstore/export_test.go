package sqlstore

import "context"

// SetExact makes searches use an index of vectors beyond so many items, or refuse them where there is none.
func (st *Store) SetExact(n int) { st.exact = n }

// Exec changes the database behind the store's back, on the connection that writes to a SQLite file.
func (st *Store) Exec(ctx context.Context, statement string) error {
	_, err := st.db.Writes.ExecContext(ctx, statement)
	return err
}

// HasPgvector reports whether the server has the extension, after the first call.
func (st *Store) HasPgvector() bool { return st.pgvector() }
