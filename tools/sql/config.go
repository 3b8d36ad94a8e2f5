package sql

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what an operator grants.
type Config struct {
	Databases map[string]*Database `json:"databases"` // by the names that agents and models use
}

// Database is one of them. Zero means the default.
type Database struct {
	Driver      string            `json:"driver"`                // postgres or sqlite
	DSN         string            `json:"dsn,omitempty"`         // of PostgreSQL: the credential whose secret is its URL
	File        string            `json:"file,omitempty"`        // of SQLite
	About       string            `json:"about,omitempty"`       // what it holds, for the model
	Write       bool              `json:"write,omitempty"`       // agents may be granted to write
	Rows        int               `json:"rows,omitempty"`        // of a result; default 1000, at most 10,000
	Bytes       int               `json:"bytes,omitempty"`       // of a result; default 128 KiB, at most 900 KiB
	Timeout     messages.Duration `json:"timeout,omitzero"`      // of a call; default 5s, at most 5m
	Connections int               `json:"connections,omitempty"` // at a time; default 4, at most 64
	Changes     int64             `json:"changes,omitempty"`     // rows that a statement may change; default 1000, at most 1,000,000
}

// Drivers.
const (
	Postgres = "postgres"
	SQLite   = "sqlite"
)

const (
	maxDatabases       = 64
	maxAbout           = 1 << 10
	defaultRows        = 1000
	mostRows           = 10_000
	defaultBytes       = 128 << 10
	leastBytes         = 1 << 10
	mostBytes          = 900 << 10
	defaultTimeout     = 5 * time.Second
	mostTimeout        = 5 * time.Minute
	defaultConnections = 4
	mostConnections    = 64
	defaultChanges     = 1000
	mostChanges        = 1_000_000
)

// ParseConfig reads an operator's part, checks it and fills in the defaults. The error is a *messages.FieldError.
func ParseConfig(part []byte) (c Config, _ error) {
	if err := strict.Decode(part, &c); err != nil {
		return Config{}, err
	}
	return c, c.check()
}

func (c *Config) check() error {
	if n := len(c.Databases); n == 0 || n > maxDatabases {
		return &messages.FieldError{Field: "databases", Reason: fmt.Sprintf("must name 1 to %d databases", maxDatabases)}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		field := "databases." + strict.Shown(name)
		if err := strict.CheckToken(field, name); err != nil {
			return err
		}
		d := c.Databases[name]
		if d == nil {
			return &messages.FieldError{Field: field, Reason: "is empty"}
		}
		if err := d.check(); err != nil {
			return strict.Under(field, err)
		}
	}
	return nil
}

// check fills in the defaults.
func (d *Database) check() error {
	wrong := func(field, format string, args ...any) error {
		return &messages.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case d.Driver != Postgres && d.Driver != SQLite:
		return wrong("driver", "must be postgres or sqlite")
	case d.Driver == Postgres && d.DSN == "":
		return wrong("dsn", "is missing: name the credential that holds the URL of the database")
	case d.Driver == Postgres && d.File != "":
		return wrong("file", "is of sqlite")
	case d.Driver == SQLite && d.File == "":
		return wrong("file", "is missing: name the file of the database")
	case d.Driver == SQLite && d.DSN != "":
		return wrong("dsn", "is of postgres")
	}
	if err := strict.CheckText("about", d.About, maxAbout); err != nil {
		return err
	}
	if d.Rows == 0 {
		d.Rows = defaultRows
	}
	if d.Bytes == 0 {
		d.Bytes = defaultBytes
	}
	if d.Timeout == 0 {
		d.Timeout = messages.Duration(defaultTimeout)
	}
	if d.Connections == 0 {
		d.Connections = defaultConnections
	}
	if d.Changes == 0 {
		d.Changes = defaultChanges
	}
	switch {
	case d.Rows < 1 || d.Rows > mostRows:
		return wrong("rows", "must be 1 to %d", mostRows)
	case d.Bytes < leastBytes || d.Bytes > mostBytes:
		return wrong("bytes", "must be %d to %d", leastBytes, mostBytes)
	case d.Timeout < messages.Duration(100*time.Millisecond) || d.Timeout > messages.Duration(mostTimeout):
		return wrong("timeout", "must be 100ms to 5m")
	case d.Connections < 1 || d.Connections > mostConnections:
		return wrong("connections", "must be 1 to %d", mostConnections)
	case d.Changes < 1 || d.Changes > mostChanges:
		return wrong("changes", "must be 1 to %d", mostChanges)
	}
	return nil
}

// open returns the database without asking it. An error is a *messages.FieldError within d.
func (d *Database) open(from Sources) (database, error) {
	if d.Driver == SQLite {
		file := d.File
		if !filepath.IsAbs(file) {
			file = filepath.Join(from.Dir, file)
		}
		return newSQLite(file, d)
	}
	if from.Secret == nil {
		return nil, &messages.FieldError{Field: "dsn", Reason: "there are no credentials"}
	}
	dsn, err := from.Secret(d.DSN)
	if err != nil {
		return nil, &messages.FieldError{Field: "dsn", Reason: err.Error()}
	}
	return newPostgres(dsn, d)
}
