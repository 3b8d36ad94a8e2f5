package kv

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/tools"
)

type deleteArgs struct {
	Key      string `json:"key"                jsonschema:"The key, 1 to 256 bytes"`
	Revision *int64 `json:"revision,omitempty" jsonschema:"Delete it only if the value has this revision now"`
}

func (f family) delete(ctx context.Context, c tools.Call, s Scope, in deleteArgs) (tools.Result, error) {
	if wrong := wrongKey(in.Key); wrong != "" {
		return about("invalid", tools.Failure(wrong)), nil
	}
	if in.Revision != nil && *in.Revision < 1 {
		return about("invalid", tools.Failure("revision: must be that of a value, 1 or more")), nil
	}
	was, err := f.store.Delete(ctx, s, Removal{Key: in.Key, Expect: in.Revision, Call: callID(c)})
	if err != nil {
		return failed(ctx, err)
	}
	text := fmt.Sprintf("Deleted %q", in.Key)
	if !was {
		text = fmt.Sprintf("(Nothing was kept under %q.)", in.Key)
	}
	r := tools.Text(text)
	r.Meta = map[string]any{"found": was}
	return r, nil
}
