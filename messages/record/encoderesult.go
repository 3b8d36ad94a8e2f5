package record

import (
	"slices"
	"strconv"

	"github.com/longshore-run/longshore/messages"
)

// A result is written by hand too: each run has it in its last record and in its last event, and no longer needs much
// stack for it.
func appendAgentResult(r *messages.AgentResult, b []byte) []byte {
	b = appendString(append(b, `{"id":`...), r.ID)
	b = strconv.AppendBool(append(b, `,"success":`...), r.Success)
	b = append(b, `,"result":`...)
	if text, ok := r.Result.(string); ok {
		b = appendString(b, text)
	} else {
		b = appendRest(b, r.Result)
	}
	if len(r.Output) > 0 {
		b = appendRest(append(b, `,"output":`...), r.Output)
	}
	if r.Error != nil {
		b = appendRest(append(b, `,"error":`...), r.Error)
	}
	b = appendTime(append(b, `,"startedAt":`...), r.StartedAt)
	b = appendTime(append(b, `,"finishedAt":`...), r.FinishedAt)
	b = appendString(append(b, `,"status":`...), string(r.Status))
	b = appendOptional(b, `,"sessionId":`, r.SessionID)
	b = strconv.AppendInt(append(b, `,"steps":`...), int64(r.Steps), 10)
	b = appendList(b, `,"actions":`, r.Actions, appendActionResult)
	b = appendList(b, `,"modelCalls":`, r.ModelCalls, appendModelCall)
	b = appendUsage(&r.TokenUsage, append(b, `,"tokenUsage":`...))
	b = append(b, `,"costEstimate":`...)
	if r.CostEstimate == nil {
		b = append(b, "null"...)
	} else {
		b = appendRest(b, *r.CostEstimate)
	}
	if r.Below != nil {
		b = appendRest(append(b, `,"below":`...), r.Below)
	}
	if len(r.MemoryDeltas) > 0 {
		b = appendRest(append(b, `,"memoryDeltas":`...), r.MemoryDeltas)
	}
	b = appendOptional(b, `,"summary":`, r.Summary)
	if len(r.Outputs) > 0 {
		b = appendRest(append(b, `,"outputs":`...), r.Outputs)
	}
	if len(r.Attachments) > 0 {
		b = appendRest(append(b, `,"attachments":`...), r.Attachments)
	}
	if r.Files != nil {
		b = appendRest(append(b, `,"files":`...), r.Files)
	}
	b = appendOptional(b, `,"logs":`, r.Logs)
	b = appendOptional(b, `,"eventStream":`, r.EventStream)
	if p := r.Provenance; p != nil {
		b = appendString(append(b, `,"provenance":{"agent":`...), p.Agent)
		b = strconv.AppendUint(append(b, `,"revision":`...), p.Revision, 10)
		b = appendOptional(b, `,"planner":`, p.Planner)
		if len(p.Prompts) > 0 {
			b = appendRest(append(b, `,"prompts":`...), p.Prompts)
		}
		for i, m := range p.Models {
			if i == 0 {
				b = append(b, `,"models":[`...)
			} else {
				b = append(b, ',')
			}
			b = appendString(b, m)
			if i == len(p.Models)-1 {
				b = append(b, ']')
			}
		}
		if len(p.Memories) > 0 {
			b = appendRest(append(b, `,"memories":`...), p.Memories)
		}
		b = append(b, '}')
	}
	b = appendTrue(b, `,"aborted":`, r.Aborted)
	if r.RetryInfo != nil {
		b = appendRest(append(b, `,"retryInfo":`...), r.RetryInfo)
	}
	if r.Metrics != nil {
		b = appendMetrics(r.Metrics, append(b, `,"metrics":`...))
	}
	if r.Diagnostics != nil {
		b = appendRest(append(b, `,"diagnostics":`...), r.Diagnostics)
	}
	if r.Seed != nil {
		b = strconv.AppendInt(append(b, `,"seed":`...), *r.Seed, 10)
	}
	b = appendTrue(b, `,"deterministic":`, r.Deterministic)
	b = appendOptional(b, `,"cut":`, r.Cut)
	b = appendTrue(b, `,"truncated":`, r.Truncated)
	if r.Transcript != nil {
		b = appendRest(append(b, `,"transcript":`...), r.Transcript)
	}
	return append(b, '}')
}

// appendList appends a field unless the list is empty.
func appendList[T any](b []byte, name string, list []T, each func(*T, []byte) []byte) []byte {
	for i := range list {
		if i == 0 {
			b = append(append(b, name...), '[')
		} else {
			b = append(b, ',')
		}
		b = each(&list[i], b)
	}
	if len(list) > 0 {
		b = append(b, ']')
	}
	return b
}

func appendActionResult(a *messages.ActionResult, b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"step":`...), int64(a.Step), 10)
	b = appendString(append(b, `,"type":`...), a.Type)
	b = appendString(append(b, `,"callId":`...), a.CallID)
	b = appendString(append(b, `,"name":`...), a.Name)
	b = appendString(append(b, `,"input":`...), a.Input)
	b = appendString(append(b, `,"output":`...), a.Output)
	b = strconv.AppendBool(append(b, `,"ok":`...), a.OK)
	b = appendOptional(b, `,"code":`, string(a.Code))
	b = strconv.AppendInt(append(b, `,"millis":`...), a.Millis, 10)
	if len(a.Meta) > 0 {
		b = appendRest(append(b, `,"meta":`...), a.Meta)
	}
	return append(b, '}')
}

func appendModelCall(c *messages.ModelCall, b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"step":`...), int64(c.Step), 10)
	b = appendOptional(b, `,"provider":`, c.Provider)
	b = appendOptional(b, `,"model":`, c.Model)
	b = appendString(append(b, `,"stop":`...), string(c.Stop))
	b = appendUsage(&c.Usage, append(b, `,"usage":`...))
	b = strconv.AppendInt(append(b, `,"millis":`...), c.Millis, 10)
	return append(appendCost(appendTrue(b, `,"cached":`, c.Cached), c.Cost), '}')
}

func appendMetrics(m *messages.Metrics, b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"durationMs":`...), m.DurationMs, 10)
	if len(m.ToolLatencyMs) > 0 {
		b = append(b, `,"toolLatencyMs":{`...)
		var few [8]string // on the stack
		names := few[:0]
		for name := range m.ToolLatencyMs {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(append(appendString(b, name), ':'), m.ToolLatencyMs[name], 10)
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

func (f *Finished) appendJSON(b []byte) []byte {
	b = appendAgentResult(&f.Result, append(b, `{"result":`...))
	b = appendTrue(b, `,"dead":`, f.Dead)
	if len(f.Used) > 0 {
		b = appendRest(append(b, `,"used":`...), f.Used)
	}
	return append(b, '}')
}

func appendRunFinished(d *messages.RunFinished, b []byte) []byte {
	b = appendAgentResult(&d.Result, append(b, `{"result":`...))
	return append(appendTrue(b, `,"webhook":`, d.Webhook), '}')
}

func appendTurnEnd(d *messages.TurnEnd, b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"steps":`...), int64(d.Steps), 10)
	b = appendUsage(&d.Usage, append(b, `,"usage":`...))
	return append(appendCost(b, d.Cost), '}')
}
