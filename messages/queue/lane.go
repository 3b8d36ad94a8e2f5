// Package queue has what decides when a queued task is worked: the lanes that share the queue, the quotas and pauses of
// tenants, agents and providers, the semaphores that cap how many runs work, and the reasons for which a run is parked.
//
// The names of lanes, semaphores and reasons are in subjects and in logs: they do not change.
package queue

import (
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Lane names a share of the queue: the tasks of one tenant at one priority, or all wake-ups and errands, of whichever
// tenant.
type Lane struct {
	Priority messages.Priority `json:"priority"`
	Tenant   string            `json:"tenant,omitempty"`
	// Partition of the queue, if that is divided: what is of one tenant and priority there is a lane of its own.
	Partition int `json:"-"`
}

// WakeLane is the lane of wake-ups and errands, and of messages that name no run.
func WakeLane() Lane { return Lane{Priority: messages.PriorityWake} }

// LaneOf is the lane of a tenant's messages at a priority. Ok is false when there is none.
func LaneOf(p messages.Priority, tenant string) (l Lane, ok bool) {
	switch {
	case !strict.ValidToken(tenant):
		return Lane{}, false
	case p.Wakes():
		return WakeLane(), true
	case !p.Valid(), tenant == messages.NoRun:
		return Lane{}, false
	default:
		return Lane{Priority: p, Tenant: tenant}, true
	}
}

// Wakes reports whether it is the lane of wake-ups.
func (l Lane) Wakes() bool { return l.Priority.Wakes() }

// In is the same lane in a partition.
func (l Lane) In(partition int) Lane {
	l.Partition = partition
	return l
}

// String is priority.tenant, or wake, and then /partition unless that is the first.
func (l Lane) String() string {
	s := string(l.Priority) + "." + l.Tenant
	if l.Wakes() {
		s = string(messages.PriorityWake)
	}
	if l.Partition > 0 {
		s += partitionMark + strconv.Itoa(l.Partition)
	}
	return s
}

const partitionMark = "/"

// ParseLane reads what String wrote.
func ParseLane(s string) (l Lane, ok bool) {
	s, number, in := strings.Cut(s, partitionMark)
	partition, err := strconv.Atoi(number)
	if in && (err != nil || partition <= 0) {
		return Lane{}, false
	}
	if s == string(messages.PriorityWake) {
		return WakeLane().In(partition), true
	}
	priority, tenant, _ := strings.Cut(s, ".")
	l, ok = LaneOf(messages.Priority(priority), tenant)
	return l.In(partition), ok && !l.Wakes()
}

// Filter matches the messages of a lane that is not that of the wake-ups, as the stream stores them: whatever the hash
// of the tenant is.
func (l Lane) Filter() string { return "lanes." + string(l.Priority) + ".*." + l.Tenant + ".*" }

// HintSubjects matches the hints that the queue sends for each message that it has stored: queued.<priority>.<tenant>.
const HintSubjects = "queued.*.*"

// LaneOfHint is the lane that a hint is about.
func LaneOfHint(subject string) (l Lane, ok bool) {
	t := strings.Split(subject, ".")
	if len(t) != 3 || t[0] != "queued" {
		return Lane{}, false
	}
	return LaneOf(messages.Priority(t[1]), t[2])
}

// SpillSubject is where workers without a free slot say which lanes have work.
const SpillSubject = "spill"
