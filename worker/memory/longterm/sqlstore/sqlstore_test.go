//go:build unix

package sqlstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/sqlstore"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// each runs a test on each kind of database; place is one that is new.
func each(t *testing.T, test func(t *testing.T, place func(*testing.T) string)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		test(t, func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "a folder", "memory?%20.db") })
	})
	t.Run("postgres", func(t *testing.T) {
		if server := postgrestest.Open(t); server != nil {
			test(t, func(t *testing.T) string { t.Helper(); return server.URL("longshore", server.Database(t)) })
		}
	})
}

// open waits a minute for the database, which may be slow beside other tests, unless a test says otherwise.
func open(t *testing.T, cfg sqlstore.Config) *sqlstore.Store {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	s, err := sqlstore.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	each(t, func(t *testing.T, place func(*testing.T) string) {
		longtermtest.Run(t, func(t *testing.T, o longtermtest.Options) longterm.Store {
			t.Helper()
			return open(t, sqlstore.Config{Where: place(t), Limits: o.Limits, Now: o.Now})
		})
	})
}
