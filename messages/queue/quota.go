package queue

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// QuotaKind says what a quota is about.
type QuotaKind string

// Kinds of quotas.
const (
	QuotaTenant   QuotaKind = "tenant"
	QuotaAgent    QuotaKind = "agent"
	QuotaProvider QuotaKind = "provider"
)

// QuotaRef names a quota: of a tenant, of an agent, or of a provider of models.
type QuotaRef struct {
	Kind QuotaKind `json:"kind"`
	Name string    `json:"name"`
}

// Check says which part is not valid.
func (r QuotaRef) Check() error {
	switch {
	case r.Kind != QuotaTenant && r.Kind != QuotaAgent && r.Kind != QuotaProvider:
		return &messages.FieldError{Field: "kind", Reason: "must be tenant, agent or provider"}
	case !strict.ValidToken(r.Name):
		return &messages.FieldError{Field: "name", Reason: "must be 1 to 64 of A-Z a-z 0-9 _ -"}
	}
	return nil
}

func (r QuotaRef) String() string { return string(r.Kind) + " " + r.Name }

// Quota is what an operator grants. The zero value of each field means no limit; a pause holds back everything that has
// not begun.
type Quota struct {
	// Weight is the tenant's share of slots when several have tasks queued, against the others' weights. 0 means 1.
	Weight int `json:"weight,omitempty"`
	// MaxRunning is how many runs of the tenant or agent may work at once, fleet-wide. Runs that wait for something
	// outside do not count.
	MaxRunning int `json:"maxRunning,omitempty"`
	// MaxQueued is how many tasks of the tenant may wait for a worker.
	MaxQueued int `json:"maxQueued,omitempty"`
	// PerMinute is how many tasks the tenant may submit in a minute.
	PerMinute int `json:"perMinute,omitempty"`
	// CostPerDay and CostPerMonth are ceilings of what the models of the tenant's runs may cost, in US dollars, by the
	// calendar in UTC. Calls whose price is unknown count nothing.
	CostPerDay   float64 `json:"costPerDay,omitempty"`
	CostPerMonth float64 `json:"costPerMonth,omitempty"`
	// Paused: nothing of it is begun or continued until it is resumed.
	Paused *Pause `json:"paused,omitempty"`
}

// Pause says who stopped something, when and why.
type Pause struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Largest values of a quota, and the longest texts of a pause.
const (
	maxWeight     = 1000
	maxQuotaCount = 1_000_000_000
	maxQuotaCost  = 1e12
	MaxPauseText  = 1024
)

// Validate says which field is wrong, or does not fit what the quota is about.
func (q *Quota) Validate(of QuotaKind) error {
	counts := []struct {
		field string
		value int
		most  int
		kinds string
	}{
		{"weight", q.Weight, maxWeight, "tenant"},
		{"maxRunning", q.MaxRunning, messages.MaxPermits, "tenant agent"},
		{"maxQueued", q.MaxQueued, maxQuotaCount, "tenant"},
		{"perMinute", q.PerMinute, maxQuotaCount, "tenant"},
	}
	for _, c := range counts {
		switch {
		case c.value < 0:
			return &messages.FieldError{Field: c.field, Reason: "must not be negative"}
		case c.value > c.most:
			return &messages.FieldError{Field: c.field, Reason: "is too large"}
		case c.value != 0 && !strings.Contains(c.kinds, string(of)):
			return &messages.FieldError{Field: c.field, Reason: "is not for a quota of this kind: " + string(of)}
		}
	}
	costs := []struct {
		field string
		value float64
	}{{"costPerDay", q.CostPerDay}, {"costPerMonth", q.CostPerMonth}}
	for _, c := range costs {
		switch {
		case math.IsNaN(c.value) || c.value < 0 || c.value > maxQuotaCost:
			return &messages.FieldError{Field: c.field, Reason: "must be an amount of US dollars"}
		case c.value != 0 && of != QuotaTenant:
			return &messages.FieldError{Field: c.field, Reason: "is not for a quota of this kind: " + string(of)}
		}
	}
	if q.Paused != nil && len(q.Paused.By)+len(q.Paused.Reason) > MaxPauseText {
		return &messages.FieldError{Field: "paused", Reason: "is too long"}
	}
	return nil
}

// Nano is a billionth of a dollar, in which spending is counted.
const Nano = 1e-9

// Limits of a quota, as parks and problems name them.
const (
	QuotaMaxQueued    = "maxQueued"
	QuotaPerMinute    = "perMinute"
	QuotaCostPerDay   = "costPerDay"
	QuotaCostPerMonth = "costPerMonth"
)

// NextDay is when the ceiling of a day begins anew.
func NextDay(now time.Time) time.Time {
	y, m, d := now.UTC().Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// NextMonth is when the ceiling of a month begins anew.
func NextMonth(now time.Time) time.Time {
	y, m, _ := now.UTC().Date()
	return time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
}

// Ceiling is the first cost ceiling that is reached, in a sentence, and when it begins anew; empty: none.
func (q *Quota) Ceiling(today, month float64, now time.Time) (limit, text string, until time.Time) {
	switch {
	case q.CostPerMonth > 0 && month >= q.CostPerMonth:
		return QuotaCostPerMonth, spentOf(month, q.CostPerMonth, "this month"), NextMonth(now)
	case q.CostPerDay > 0 && today >= q.CostPerDay:
		return QuotaCostPerDay, spentOf(today, q.CostPerDay, "today"), NextDay(now)
	default:
		return "", "", until
	}
}

func spentOf(spent, ceiling float64, when string) string {
	return fmt.Sprintf("%s of %s are spent %s (UTC)", messages.Money(messages.RoundCost(spent)), messages.Money(ceiling), when)
}
