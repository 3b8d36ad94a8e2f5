package toolbox

import (
	"context"
	"encoding/json"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/remote"
)

// remoteTools are the tools that other programs serve over NATS. One that none serves is offered when a program comes.
func remoteTools(ctx context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	cfg, err := remote.ParseConfig(part)
	if err != nil {
		return nil, nil, err
	}
	if n.NATS == nil {
		return nil, nil, &messages.FieldError{Field: "tools", Reason: "there is no connection to NATS here"}
	}
	f, err := remote.Open(ctx, cfg, remote.Deps{NATS: n.NATS, Dir: n.Dir, Log: n.Log})
	if err != nil {
		return nil, nil, err
	}
	n.Degraded(f.Degraded)
	return f.Tools(), f.Close, nil
}
