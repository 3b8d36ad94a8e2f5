package kv

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

type setArgs struct {
	Key        string `json:"key"                  jsonschema:"The key, 1 to 256 bytes"`
	Value      string `json:"value"                jsonschema:"The text to keep"`
	TTLSeconds int64  `json:"ttlSeconds,omitempty" jsonschema:"Seconds after which it expires; by default as long as the operator allows"`
	Revision   *int64 `json:"revision,omitempty"   jsonschema:"Set it only if the value has this revision now; 0: only if nothing is kept under the key"`
}

func (f family) set(ctx context.Context, c tools.Call, s Scope, in setArgs) (tools.Result, error) {
	if wrong := wrongKey(in.Key); wrong != "" {
		return about("invalid", tools.Failure(wrong)), nil
	}
	most := int64(time.Duration(f.config.TTL) / time.Second)
	switch {
	case len(in.Value) > f.config.ValueBytes:
		return about("invalid", tools.Failure(fmt.Sprintf("value: has %d bytes, and a value may have %d", len(in.Value), f.config.ValueBytes))), nil
	case in.TTLSeconds < 0 || in.TTLSeconds > most:
		return about("invalid", tools.Failure(fmt.Sprintf("ttlSeconds: must be 1 to %d", most))), nil
	case in.Revision != nil && *in.Revision < 0:
		return about("invalid", tools.Failure("revision: must not be negative")), nil
	}
	w := Write{Key: in.Key, Value: in.Value, TTL: time.Duration(f.config.TTL), Expect: in.Revision, Call: callID(c)}
	if in.TTLSeconds > 0 {
		w.TTL = time.Duration(in.TTLSeconds) * time.Second
	}
	revision, err := f.store.Set(ctx, s, w)
	if err != nil {
		return failed(ctx, err)
	}
	r := tools.Text(fmt.Sprintf("Kept %d bytes under %q with revision %d", len(in.Value), in.Key, revision))
	r.Meta = map[string]any{"bytes": len(in.Value), "revision": revision, "ttl": messages.Duration(w.TTL)}
	return r, nil
}
