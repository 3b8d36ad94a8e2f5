package batches

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// tellBatch queues the webhook of a batch that has ended, and then notes that it is.
func (bs *Batches) tellBatch(ctx context.Context, head *messages.Batch, revision uint64) error {
	if head.Webhook.Wants(string(head.Status)) {
		event := head.Finished()
		body, err := json.Marshal(&event)
		if err != nil {
			return fmt.Errorf("encode the end of batch %s: %w", head.ID, err)
		}
		if err := bs.cfg.Webhooks.Enqueue(ctx, messages.BatchWebhook(head.BatchRef, head.Status, head.Webhook.URL, body)); err != nil {
			return err
		}
	}
	head.Cursor.Tell = false
	_, err := bs.cfg.Store.Put(ctx, head, revision)
	return err
}
