package sql

import (
	"context"
	stdsql "database/sql"
	"reflect"
	"sync"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// interruptAfter stops what a connection of SQLite does once ctx ends, until it is released. The driver itself stops a statement only
// before its first row: each further one may take forever. Release waits for an interrupt that has begun, and must come before a commit
// and before the connection is closed.
func interruptAfter(ctx context.Context, conn *stdsql.Conn) (release func()) {
	var db uintptr
	if err := conn.Raw(func(c any) error { db = handle(c); return nil }); err != nil || db == 0 {
		return func() {} // the connection is broken, and says so itself
	}
	var mu sync.Mutex
	released := false
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if released {
			return
		}
		tls := libc.NewTLS()
		defer tls.Close()
		sqlite3.Xsqlite3_interrupt(tls, db) // from any goroutine: it sets a flag of the connection
	})
	return func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		released = true
	}
}

// handle is the sqlite3* of a connection of the driver, which does not offer it; 0 if it has none.
func handle(conn any) uintptr {
	v := reflect.ValueOf(conn)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return 0
	}
	db := v.Elem().FieldByName("db")
	if db.Kind() != reflect.Uintptr {
		return 0
	}
	return uintptr(db.Uint())
}
