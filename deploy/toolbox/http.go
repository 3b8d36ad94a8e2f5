package toolbox

import (
	"context"
	"encoding/json"

	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/web"
)

// httpTools are http_get and http_request.
func httpTools(_ context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	cfg, err := web.ParseConfig(part)
	if err != nil {
		return nil, nil, err
	}
	made, err := web.Tools(cfg, n.Credentials)
	return made, nil, err
}
