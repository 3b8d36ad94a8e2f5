package contract

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/record"
)

// named is a type that travels, by the name of its schema.
type named struct {
	name string
	of   reflect.Type
	// strict: clients send it to Longshore, which refuses unknown fields. What Longshore sends may gain fields.
	strict bool
}

// types are all that travel on subjects, but for events: what operations ask for and reply, and what is in neither. Their
// names are those of the Go types.
func types(ops control.Table) ([]named, error) {
	all := []named{
		{of: reflect.TypeFor[control.TaskResult]()},
		{of: reflect.TypeFor[messages.Problem]()},
		{of: reflect.TypeFor[messages.Live]()},
		{of: reflect.TypeFor[logentry.LogEntry]()},
		{of: reflect.TypeFor[logentry.LogEntryList]()},
	}
	for _, o := range ops.OverNATS() {
		all = append(all, named{of: reflect.TypeOf(o.Asks), strict: true})
	}
	for _, o := range ops.OverNATS() {
		all = append(all, named{of: reflect.TypeOf(o.Reply)})
	}
	var out []named
	names := map[string]reflect.Type{}
	for _, n := range all {
		n.name = schemaName(n.of)
		switch names[n.name] {
		case n.of: // both asked for and replied: it is strict
			continue
		case nil:
			names[n.name] = n.of
			out = append(out, n)
		default:
			return nil, fmt.Errorf("describe the operations: %s and %s would both be the schema %s", names[n.name], n.of, n.name)
		}
	}
	return out, nil
}

// schemaName is the name of a type's schema: api-key of APIKey.
func schemaName(of reflect.Type) string {
	switch of {
	case reflect.TypeFor[control.SchedulePut](), reflect.TypeFor[control.ScheduleRun](): // as they were first published
		return schemaWords(of.Name()) + "-request"
	}
	switch of.PkgPath() {
	case reflect.TypeFor[memory.Item]().PkgPath(): // its names are short
		return "memory-" + schemaWords(of.Name())
	case reflect.TypeFor[erasure.Kept]().PkgPath():
		return "data-" + schemaWords(of.Name())
	default:
		return schemaWords(of.Name())
	}
}

// schemaWords are the words of a Go name, in lower case with hyphens.
func schemaWords(name string) string {
	var b strings.Builder
	for i, r := range name {
		upper := unicode.IsUpper(r)
		ends := i > 0 && (!unicode.IsUpper(rune(name[i-1])) || i+1 < len(name) && unicode.IsLower(rune(name[i+1])))
		if upper && ends {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// event is a kind of event.
type event struct {
	name string
	data reflect.Type
	text string
}

func data[T any](name, text string) event { return event{name, reflect.TypeFor[T](), text} }

// events are all kinds of events.
func events() []event {
	return []event{
		data[messages.RunQueued](messages.EventRunQueued, "The task of a run."),
		data[messages.RunStarted](messages.EventRunStarted, "A worker has taken the run up."),
		data[messages.Step](messages.EventStepStart, "A step begins."),
		data[messages.MessageEnd](messages.EventMessageEnd, "The model has replied."),
		data[messages.ToolExecution](messages.EventToolExecutionStart, "A tool call begins."),
		data[messages.ToolExecution](messages.EventToolExecutionEnd, "A tool call has returned, or was refused."),
		data[messages.Step](messages.EventStepEnd, "A step has ended."),
		data[record.PlanData](messages.EventPlan, "The plan, and how to continue with it."),
		data[messages.RunWaiting](messages.EventRunWaiting, "The run waits."),
		data[messages.RunWaiting](messages.EventRunResumed, "The run continues."),
		data[messages.ApprovalRequested](messages.EventApprovalRequested, "A call waits for an approval."),
		data[messages.ApprovalDecided](messages.EventApprovalDecided, "It was approved, denied, or not answered in time."),
		data[messages.DelegatedData](messages.EventDelegated, "The run hands sub-tasks to other agents."),
		data[messages.ChildEndedData](messages.EventChildEnded, "A run to which it delegated has ended."),
		data[messages.SteeredData](messages.EventSteered, "A person told the run something."),
		data[messages.DecisionIgnored](messages.EventDecisionIgnored, "A decision does not count: it has no valid signature."),
		data[messages.CancelAsked](messages.EventCancelRequested, "The run was asked to stop."),
		data[messages.BudgetWarning](messages.EventBudgetWarning, "The soft share of a cap is used."),
		data[messages.HookFailure](messages.EventHookFailed, "A hook could not be asked or told."),
		data[messages.PolicyViolation](messages.EventPolicyViolation, "A rule blocked something, redacted it, or has a call wait for a person."),
		data[messages.MemoryWritten](messages.EventMemoryWrite, "A tool call changed a memory."),
		data[messages.MemoryRecalled](messages.EventMemoryRecalled, "Long-term memory was searched for the task, before the first model call."),
		data[messages.ErrorData](messages.EventError, "A model call failed for good."),
		data[messages.TurnEnd](messages.EventTurnEnd, "All steps are done."),
		data[messages.RunFinished](messages.EventRunFinished, "The run has ended. It is the last event of its run."),
	}
}

// EventNames are the names of the events of a run.
func EventNames() []string {
	var names []string
	for _, e := range events() {
		names = append(names, e.name)
	}
	return names
}

// happenings are events about no run: of definitions, of people.
func happenings() []event {
	return []event{
		data[control.Change](control.EventAgentApplied, "The definition of an agent was stored or removed."),
		data[control.Change](control.EventPromptChanged, "A prompt was stored or removed."),
		data[control.Acted](control.EventActed, "A person or program changed something."),
		data[control.AuthDenied](control.EventAuthDenied, "A caller was refused: unknown, or not allowed to do this."),
		data[control.Feedback](control.EventFeedback, "A user rated a run."),
		data[erasure.Erased](erasure.EventErased, "What was kept of a tenant, a conversation or a person was erased."),
	}
}
