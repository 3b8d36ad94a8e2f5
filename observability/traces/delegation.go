package traces

import (
	"context"
	"encoding/json"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/longshore-run/longshore/messages"
)

// delegation is a tool call that has delegated. The children were given its span when they were made, before the call had returned.
type delegation struct {
	data *messages.DelegatedData
	n    uint64 // number of the event
	at   time.Time
}

func ofDelegation(d *messages.DelegatedData) part { return part(messages.DelegationPart(d.Number)) }

// delegations are those of the run, in order.
func (m *making) delegations(ctx context.Context) (out []delegation, err error) {
	all, err := m.history.of(ctx, m.e.Run, messages.EventDelegated, time.Time{})
	for i := range all {
		if d, err := read[messages.DelegatedData](&all[i]); err == nil {
			out = append(out, delegation{d, all[i].Number(), all[i].Time})
		}
	}
	return out, err
}

// delegated is the delegation of a tool call that has returned; nil: it has not delegated.
func (m *making) delegated(ctx context.Context, d *messages.ToolExecution) (found *delegation, err error) {
	if d.ToolName != messages.ToolDelegate {
		return nil, nil
	}
	all, err := m.delegations(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all { // ids of calls may come again
		if all[i].data.CallID == d.CallID && all[i].n < m.e.Number() {
			found = &all[i]
		}
	}
	var meta struct {
		Children int `json:"children"`
	}
	if found == nil && json.Unmarshal(d.Meta, &meta) == nil && meta.Children > 0 && m.e.Delivered <= patientTimes {
		return nil, errNotYet
	}
	return found, nil
}

// openDelegations are the calls that had not returned when the run ended.
func (m *making) openDelegations(ctx context.Context) (open []*tracepb.Span, err error) {
	all, err := m.delegations(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	returned, err := m.history.of(ctx, m.e.Run, messages.EventToolExecutionEnd, time.Time{})
	if err != nil {
		return nil, err
	}
	ended := map[string]uint64{} // by call, the newest
	for i := range returned {
		if d, err := read[messages.ToolExecution](&returned[i]); err == nil {
			ended[d.CallID] = max(ended[d.CallID], returned[i].Number())
		}
	}
	for _, d := range all {
		if ended[d.data.CallID] > d.n {
			continue
		}
		a := m.base()
		a.text(attrOperation, opTool)
		a.text(attrTool, messages.ToolDelegate)
		a.text(attrToolCall, d.data.CallID)
		open = append(open, m.span(ofDelegation(d.data), ofStep(d.data.Step), named(opTool, messages.ToolDelegate), d.at, a))
	}
	return open, nil
}
