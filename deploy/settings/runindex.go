package settings

import (
	"net/url"
	"strings"
	"time"
)

// RunIndex says where the index of runs is.
type RunIndex struct {
	Index       string        `env:"LONGSHORE_INDEX"           envDefault:"auto"  help:"where runs are listed from: a postgres:// URL that dispatchers share, the path of a SQLite file, auto for a local file that is rebuilt if it is lost, or none"`
	IndexRetain time.Duration `env:"LONGSHORE_INDEX_RETENTION" envDefault:"2160h" help:"how long a run stays in the index after its end"`
}

// Places of an index that are none.
const (
	IndexAuto = "auto"
	IndexNone = "none"
)

// Check returns an *Error.
func (s *RunIndex) Check() error {
	if scheme, _, ok := strings.Cut(s.Index, "://"); ok {
		if _, err := url.Parse(s.Index); err != nil || scheme != "postgres" && scheme != "postgresql" {
			return Errorf("LONGSHORE_INDEX: must be a URL such as postgres://user@host/database, the path of a file, auto or none")
		}
	}
	if s.IndexRetain < time.Hour {
		return Errorf("LONGSHORE_INDEX_RETENTION: must be at least 1h")
	}
	return nil
}
