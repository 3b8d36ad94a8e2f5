package record

import (
	"iter"

	"github.com/longshore-run/longshore/messages"
)

// Said yields the messages of an entry with their places.
func Said(e *Entry) iter.Seq2[messages.TranscriptPlace, messages.TranscriptMessage] {
	return func(yield func(messages.TranscriptPlace, messages.TranscriptMessage) bool) {
		at := messages.TranscriptPlace{Seq: e.Seq}
		each := func(m messages.TranscriptMessage) bool {
			at.N++
			m.At, m.Time = at.String(), e.Head.Time
			return yield(at, m)
		}
		for _, r := range e.Records {
			if !saidBy(r, each) {
				return
			}
		}
	}
}

// saidBy passes the messages of a record on; false: no more are wanted.
func saidBy(r Record, each func(messages.TranscriptMessage) bool) bool {
	switch r := r.(type) {
	case *Started:
		return r.said(each)
	case *Recalled:
		for _, m := range r.Messages {
			if !each(messages.TranscriptMessage{Message: m, Recalled: true}) {
				return false
			}
		}
	case *Summarised:
		return r.Text == "" || each(messages.TranscriptMessage{Message: messages.Message{Role: messages.RoleUser, Content: messages.TextContent(r.Text)}, Recalled: true})
	case *ModelReplied:
		return each(messages.TranscriptMessage{Step: r.Step, Message: r.Message})
	case *ToolStarted:
		if r.StepID != "" { // a step of a plan: no reply has its call
			return each(messages.TranscriptMessage{Step: r.Step, Message: messages.Message{Role: messages.RoleAssistant, Content: []messages.Block{{ToolCall: &r.Call}}}})
		}
	case *ToolReturned:
		return each(messages.TranscriptMessage{Step: r.Step, Message: messages.Message{Role: messages.RoleTool, Content: []messages.Block{{ToolResult: &r.Result}}}})
	case *Steered:
		return each(messages.TranscriptMessage{Message: messages.Message{Role: messages.RoleUser, Content: messages.TextContent(r.Message)}})
	default:
	}
	return true
}

func (r *Started) said(each func(messages.TranscriptMessage) bool) bool {
	if r.Agent.Instructions != "" && !each(messages.TranscriptMessage{Message: messages.Message{Role: messages.RoleSystem, Content: messages.TextContent(r.Agent.Instructions)}}) {
		return false
	}
	ask := append([]messages.Block{}, r.Task.Input...)
	if len(r.Task.Context) > 0 {
		ask = append(ask, messages.Block{Text: string(r.Task.Context)})
	}
	if len(ask) > 0 && !each(messages.TranscriptMessage{Message: messages.Message{Role: messages.RoleUser, Content: ask}}) {
		return false
	}
	for _, before := range r.Prefix {
		if !saidBy(before, each) {
			return false
		}
	}
	return true
}
