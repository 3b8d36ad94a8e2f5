package control

import "time"

// WebhookStanding says how far a webhook is.
type WebhookStanding string

// Standings of a webhook.
const (
	// WebhookPending: it is still to be delivered, now or after a pause.
	WebhookPending WebhookStanding = "pending"
	// WebhookDelivered: it is neither queued nor a dead letter. The receiver has accepted it, unless its dead letter was purged or
	// no dispatcher has sent webhooks for a week.
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
