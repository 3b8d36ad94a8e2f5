//go:build unix

package sql_test

import (
	"testing"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }
