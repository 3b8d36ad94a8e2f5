package toolbox

import (
	"context"
	"encoding/json"

	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/search"
)

// searchTools are web_search.
func searchTools(_ context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	cfg, err := search.ParseConfig(part)
	if err != nil {
		return nil, nil, err
	}
	made, err := search.Tools(cfg, n.Credentials)
	return made, nil, err
}
