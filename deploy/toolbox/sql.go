package toolbox

import (
	"context"
	"encoding/json"

	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/sql"
)

// sqlTools are sql_schema, sql_query and, where a database may be written, sql_execute. Databases of PostgreSQL need not answer yet.
func sqlTools(_ context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	cfg, err := sql.ParseConfig(part)
	if err != nil {
		return nil, nil, err
	}
	made, err := sql.Tools(cfg, sql.Sources{Secret: n.Credentials.Secret, Dir: n.Dir, Log: n.Log})
	return made, nil, err
}
