package kv

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/tools"
)

// How many keys a call lists: with the longest keys they stay below the limit of a result.
const (
	someListed = 100
	mostListed = 200
)

type listArgs struct {
	Prefix string `json:"prefix,omitempty" jsonschema:"List only keys that begin with this; all by default"`
	After  string `json:"after,omitempty"  jsonschema:"List only keys after this one, to continue a list"`
	Limit  int    `json:"limit,omitempty"  jsonschema:"Keys at most; 100 by default, 200 at most"`
}

func (f family) list(ctx context.Context, _ tools.Call, s Scope, in listArgs) (tools.Result, error) {
	for field, key := range map[string]string{"prefix": in.Prefix, "after": in.After} {
		if wrong := badKey(field, key); wrong != "" {
			return about("invalid", tools.Failure(wrong)), nil
		}
	}
	limit := cmp.Or(in.Limit, someListed)
	if limit < 1 || limit > mostListed {
		return about("invalid", tools.Failure(fmt.Sprintf("limit: must be 1 to %d", mostListed))), nil
	}
	entries, more, err := f.store.List(ctx, s, Query{Prefix: in.Prefix, After: in.After, Limit: limit})
	if err != nil {
		return failed(ctx, err)
	}
	var text strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&text, "%s (%d bytes, revision %d)\n", e.Key, e.Bytes, e.Revision)
	}
	switch {
	case more:
		fmt.Fprintf(&text, "(There are more: continue with after %q.)", entries[len(entries)-1].Key)
	case len(entries) == 0:
		text.WriteString("(There are no such keys.)")
	}
	r := tools.Text(strings.TrimSuffix(text.String(), "\n"))
	r.Meta = map[string]any{"keys": len(entries), "truncated": more}
	return r, nil
}
