package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages/bus"
)

// Bucket is the object store that, with the permissions in deploy/nats, only the auditor may write. A dispatcher creates it.
const Bucket = bus.BucketAudit

// OpenBucket opens an object store for the copies of an audit, and makes it where it is missing, with as many replicas
// as EVENTS has.
func OpenBucket(ctx context.Context, js jetstream.JetStream, bucket string) (jetstream.ObjectStore, error) {
	store, err := js.ObjectStore(ctx, bucket)
	if err == nil {
		return store, nil
	}
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, fmt.Errorf("open the object store %s: %w", bucket, err)
	}
	events, err := js.Stream(ctx, bus.StreamEvents)
	if errors.Is(err, jetstream.ErrStreamNotFound) { // it may be in several
		events, err = js.Stream(ctx, bus.PartitionName(bus.StreamEvents, 0, bus.MaxPartitions))
	}
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", bus.StreamEvents, err)
	}
	store, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: bucket, Description: "Copies of the audit's segments", Storage: jetstream.FileStorage,
		Replicas: events.CachedInfo().Config.Replicas, Compression: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the object store %s: %w", bucket, err)
	}
	return store, nil
}
