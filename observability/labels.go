package observability

import (
	"slices"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// Values of labels that stand for what is not shown itself.
const (
	labelOther   = "other"   // not one of a closed list, too long, or one too many
	labelUnknown = "unknown" // not given
	labelNone    = "none"    // there is none: the code of a success
)

const (
	maxLabels    = 200 // distinct values of an open label, such as agents; each is a series for as long as the process lives
	maxLabelSize = 300 // in bytes; events shorten names to less
)

// openLabel bounds the values of a label that others name: the first so many are shown, all later ones are "other".
type openLabel struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// newOpenLabel returns a label that always shows the known values, whatever else was shown before.
func newOpenLabel(known ...string) *openLabel {
	l := &openLabel{seen: map[string]struct{}{}}
	for _, name := range known {
		l.seen[name] = struct{}{}
	}
	return l
}

// parkReasons are the reasons for which our own workers park runs.
func parkReasons() (names []string) {
	for _, r := range queue.ParkReasons() {
		names = append(names, r.Reason)
	}
	return names
}

// show is the value to show for a name.
func (l *openLabel) show(name string) string {
	switch {
	case name == "":
		return labelUnknown
	case len(name) > maxLabelSize, !l.admit(name):
		return labelOther
	default:
		return name
	}
}

// recall is show for a name that may be made up: it does not take a place.
func (l *openLabel) recall(name string) string {
	l.mu.Lock()
	_, known := l.seen[name]
	l.mu.Unlock()
	if !known {
		return labelOther
	}
	return name
}

// showPair is show for two labels that belong together, so that their combinations are bounded too.
func (l *openLabel) showPair(first, second string) (string, string) {
	if len(first) > maxLabelSize || len(second) > maxLabelSize || !l.admit(first+"\x00"+second) {
		return labelOther, labelOther
	}
	return given(first), given(second)
}

func given(name string) string {
	if name == "" {
		return labelUnknown
	}
	return name
}

func (l *openLabel) admit(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.seen[name]; known {
		return true
	}
	if len(l.seen) == maxLabels {
		return false
	}
	l.seen[name] = struct{}{}
	return true
}

// oneOf is the value to show for a label whose values are known.
func oneOf[T ~string](value T, known ...T) string {
	if slices.Contains(known, value) {
		return string(value)
	}
	return labelOther
}

func eventLabel(name string) string {
	return oneOf(name, messages.EventRunQueued, messages.EventRunStarted, messages.EventStepStart,
		messages.EventMessageEnd, messages.EventToolExecutionStart, messages.EventToolExecutionEnd,
		messages.EventStepEnd, messages.EventRunWaiting, messages.EventRunResumed, messages.EventCancelRequested,
		messages.EventError, messages.EventTurnEnd, messages.EventRunFinished, messages.EventPlan, messages.EventBudgetWarning, messages.EventHookFailed, messages.EventPolicyViolation, messages.EventMemoryWrite, messages.EventMemoryRecalled, messages.EventSteered, messages.EventDelegated, messages.EventChildEnded,
		messages.EventApprovalRequested, messages.EventApprovalDecided, control.EventFeedback, messages.EventDecisionIgnored)
}

func statusLabel(s messages.Status) string {
	return oneOf(s, messages.StatusCompleted, messages.StatusFailed, messages.StatusCancelled)
}

func stopLabel(s messages.StopReason) string {
	return oneOf(s, messages.StopEnd, messages.StopToolCalls, messages.StopLength, messages.StopContentFilter,
		messages.StopRefusal, messages.StopError)
}

func codeLabel(c messages.Code) string {
	if _, known := messages.Codes()[c]; !known {
		return labelOther
	}
	return string(c)
}

func decisionLabel(decision string) string {
	return oneOf(decision, "approved", "denied", messages.Lapsed)
}

func limitLabel(limit string) string {
	return oneOf(limit, messages.CapModelCalls, messages.CapToolCalls, messages.CapTokens, messages.CapCost, messages.CapWallTime)
}
