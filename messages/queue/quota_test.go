package queue_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
)

func TestQuotaRefuses(t *testing.T) {
	tests := map[string]struct {
		of    queue.QuotaKind
		quota queue.Quota
		field string
	}{
		"negative":            {queue.QuotaTenant, queue.Quota{MaxRunning: -1}, "maxRunning"},
		"too heavy":           {queue.QuotaTenant, queue.Quota{Weight: 1001}, "weight"},
		"weight of an agent":  {queue.QuotaAgent, queue.Quota{Weight: 2}, "weight"},
		"queue of an agent":   {queue.QuotaAgent, queue.Quota{MaxQueued: 2}, "maxQueued"},
		"runs of a provider":  {queue.QuotaProvider, queue.Quota{MaxRunning: 2}, "maxRunning"},
		"not a number":        {queue.QuotaTenant, queue.Quota{CostPerDay: math.NaN()}, "costPerDay"},
		"cost of an agent":    {queue.QuotaAgent, queue.Quota{CostPerMonth: 1}, "costPerMonth"},
		"a long reason":       {queue.QuotaAgent, queue.Quota{Paused: &queue.Pause{Reason: strings.Repeat("x", 2000)}}, "paused"},
		"nothing is no limit": {queue.QuotaProvider, queue.Quota{}, ""},
		"all of a tenant": {queue.QuotaTenant, queue.Quota{
			Weight: 3, MaxRunning: 4, MaxQueued: 5, PerMinute: 6, CostPerDay: 7, CostPerMonth: 8, Paused: &queue.Pause{By: "ann"},
		}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := tc.quota.Validate(tc.of)
			var field *messages.FieldError
			if errors.As(err, &field); tc.field == "" && err != nil || tc.field != "" && (field == nil || field.Field != tc.field) {
				t.Errorf("got %v, want an error of %q", err, tc.field)
			}
		})
	}
}
