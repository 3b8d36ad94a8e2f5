package toolbox

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/kv/redisstore"
	"github.com/longshore-run/longshore/worker/memory"
)

// kvTools are kv_get, kv_set, kv_delete and kv_list, on the worker's Redis or on that of a credential. Redis need not answer yet.
func kvTools(_ context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	cfg, err := kv.ParseConfig(part)
	if err != nil {
		return nil, nil, err
	}
	wrong := func(reason string) error { return &messages.FieldError{Field: "redis", Reason: reason} }
	address := cmp.Or(n.RedisURL, "none")
	if cfg.Redis != "" {
		if address, err = n.Credentials.Secret(cfg.Redis); err != nil {
			return nil, nil, wrong(err.Error())
		}
	}
	if address == "none" {
		return nil, nil, wrong("is missing, and REDIS_URL is none: name the credential that holds the URL of a Redis")
	}
	rdb, err := memory.Connect(address)
	if err != nil {
		return nil, nil, wrong(err.Error()) // which holds no part of the URL
	}
	made, err := kv.Tools(redisstore.New(rdb, cfg.Limits()), cfg)
	return made, rdb.Close, err
}
