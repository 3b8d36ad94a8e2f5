package service

import "sync/atomic"

// Stats count since New.
type Stats struct {
	WebhooksDelivered uint64
	WebhooksFailed    uint64 // attempts
	WebhooksGivenUp   uint64 // webhooks that became dead letters
}

type webhookCounts struct{ delivered, failed, givenUp atomic.Uint64 }

// Stats may be called at any time.
func (s *Service) Stats() Stats {
	return Stats{s.sent.delivered.Load(), s.sent.failed.Load(), s.sent.givenUp.Load()}
}
