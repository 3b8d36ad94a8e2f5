package control

import "time"

// WebhookStanding says how far a webhook is.
type WebhookStanding string

// Standings of a webhook.
const (
	// WebhookPending: it is still to be delivered, now or after a pause.
	WebhookPending WebhookStanding = "pending"
	// WebhookDelivered: it waits no more and is no dead letter. Its receiver has taken it, unless somebody has purged
	// its dead letter or no dispatcher sent webhooks for a week.
	WebhookDelivered WebhookStanding = "delivered"
	// WebhookDead: it was given up, and is a dead letter that can be sent again.
	WebhookDead WebhookStanding = "dead"
)

// WebhookState is what became of the webhook of a run that has ended.
type WebhookState struct {
	State     WebhookStanding `json:"state"`
	Attempts  int             `json:"attempts,omitempty"`  // of a dead one
	LastError string          `json:"lastError,omitempty"` // of a dead one; never with the address
	At        *time.Time      `json:"at,omitempty"`        // when it was queued, or given up
}
