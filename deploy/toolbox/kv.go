package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/kv/redisstore"
	"github.com/longshore-run/longshore/worker/memory"
)

// kvTools are kv_get, kv_set, kv_delete and kv_list, on the worker's Redis or on that of a credential. Redis need not answer yet.
func kvTools(ctx context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
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
	store := redisstore.NewSealed(rdb, cfg.Limits(), n.Sealer)
	made, err := kv.Tools(store, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, rdb.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	var sweeping sync.WaitGroup
	if n.Gone != nil {
		sweeping.Go(func() { keepSweeping(ctx, store, n) })
	}
	return made, func() error {
		stop()
		sweeping.Wait()
		return rdb.Close()
	}, nil
}

// sweepEvery is how often a worker looks for values of runs and sessions that are gone. Each look reads the names of all keys.
const sweepEvery = time.Hour

// keepSweeping erases what is gone at once and from then on until ctx ends.
func keepSweeping(ctx context.Context, store kv.Eraser, n Needs) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		erased, err := kv.Sweep(ctx, store, n.Gone)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.Log.WarnContext(ctx, "look for values of runs that are gone", "err", err)
		case erased > 0:
			n.Log.InfoContext(ctx, "erased the values of runs and sessions that are gone", "scopes", erased)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
