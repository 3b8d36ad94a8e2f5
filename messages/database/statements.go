package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
)

// maxStatements bounds what a connection keeps. Those of applying are some thirty; questions have a few shapes each.
const maxStatements = 64

// connector opens connections of SQLite that keep their statements. To prepare one costs more than to run it.
type connector struct {
	driver driver.Driver
	dsn    string
}

func (c *connector) Driver() driver.Driver { return c.driver }

func (c *connector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	is, ok := opened.(connection)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a connection of SQLite is a %T, which cannot prepare statements", opened), opened.Close())
	}
	return &keeping{connection: is}, nil
}

// connection is what database/sql uses of a connection here.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.SessionResetter
	driver.Validator
}

// statement is a prepared one.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// keeping is a connection with the statements that it used last, the newest last, each of which no rows are read from. Like
// every connection of database/sql it is used by one goroutine at a time.
type keeping struct {
	connection

	kept []keptStatement
}

type keptStatement struct {
	text string
	statement
}

// take returns the statement of a text. It is the caller's until it is put back or closed.
func (c *keeping) take(ctx context.Context, text string) (keptStatement, error) {
	if i := slices.IndexFunc(c.kept, func(s keptStatement) bool { return s.text == text }); i >= 0 {
		s := c.kept[i]
		c.kept = slices.Delete(c.kept, i, i+1)
		return s, nil
	}
	prepared, err := c.PrepareContext(ctx, text)
	if err != nil {
		return keptStatement{}, err
	}
	s, ok := prepared.(statement)
	if !ok {
		return keptStatement{}, errors.Join(fmt.Errorf("a statement of SQLite is a %T, which takes no context", prepared), prepared.Close())
	}
	return keptStatement{text, s}, nil
}

// put keeps a statement for its next use; the one that was not used for longest may go.
func (c *keeping) put(s keptStatement) error {
	c.kept = append(c.kept, s)
	if len(c.kept) <= maxStatements {
		return nil
	}
	oldest := c.kept[0]
	c.kept = slices.Delete(c.kept, 0, 1)
	return oldest.Close()
}

// ExecContext is what database/sql calls for a statement without rows.
func (c *keeping) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	result, err := s.ExecContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return result, c.put(s)
}

// QueryContext is what database/sql calls for a statement with rows.
func (c *keeping) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &keptRows{rows, c, s}, nil
}

// Close ends the statements and the connection.
func (c *keeping) Close() error {
	var all error
	for _, s := range c.kept {
		all = errors.Join(all, s.Close())
	}
	c.kept = nil
	return errors.Join(all, c.connection.Close())
}

// keptRows are rows that give their statement back when they are closed, which database/sql does once.
type keptRows struct {
	driver.Rows

	conn *keeping
	s    keptStatement
}

func (r *keptRows) Close() error {
	if err := r.Rows.Close(); err != nil {
		return errors.Join(err, r.s.Close())
	}
	return r.conn.put(r.s)
}
