package messages_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

func TestQuotaRefuses(t *testing.T) {
	tests := map[string]struct {
		of    messages.QuotaKind
		quota messages.Quota
		field string
	}{
		"negative":            {messages.QuotaTenant, messages.Quota{MaxRunning: -1}, "maxRunning"},
		"too heavy":           {messages.QuotaTenant, messages.Quota{Weight: 1001}, "weight"},
		"weight of an agent":  {messages.QuotaAgent, messages.Quota{Weight: 2}, "weight"},
		"queue of an agent":   {messages.QuotaAgent, messages.Quota{MaxQueued: 2}, "maxQueued"},
		"runs of a provider":  {messages.QuotaProvider, messages.Quota{MaxRunning: 2}, "maxRunning"},
		"not a number":        {messages.QuotaTenant, messages.Quota{CostPerDay: math.NaN()}, "costPerDay"},
		"cost of an agent":    {messages.QuotaAgent, messages.Quota{CostPerMonth: 1}, "costPerMonth"},
		"a long reason":       {messages.QuotaAgent, messages.Quota{Paused: &messages.Pause{Reason: strings.Repeat("x", 2000)}}, "paused"},
		"nothing is no limit": {messages.QuotaProvider, messages.Quota{}, ""},
		"all of a tenant": {messages.QuotaTenant, messages.Quota{
			Weight: 3, MaxRunning: 4, MaxQueued: 5, PerMinute: 6, CostPerDay: 7, CostPerMonth: 8, Paused: &messages.Pause{By: "ann"},
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
