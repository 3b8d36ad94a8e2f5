package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/tools"
)

type getArgs struct {
	Key string `json:"key" jsonschema:"The key, 1 to 256 bytes"`
}

func (f family) get(ctx context.Context, _ tools.Call, s Scope, in getArgs) (tools.Result, error) {
	if wrong := wrongKey(in.Key); wrong != "" {
		return about("invalid", tools.Failure(wrong)), nil
	}
	item, err := f.store.Get(ctx, s, in.Key)
	if errors.Is(err, ErrNone) {
		r := tools.Text(fmt.Sprintf("(Nothing is kept under %q.)", in.Key))
		r.Meta = map[string]any{"found": false}
		return r, nil
	}
	if err != nil {
		return failed(ctx, err)
	}
	r := tools.Text(fmt.Sprintf("(Revision %d)\n%s", item.Revision, item.Value))
	r.Meta = map[string]any{"found": true, "bytes": len(item.Value), "revision": item.Revision, "expires": item.Expires.UTC().Format(time.RFC3339)}
	return r, nil
}
