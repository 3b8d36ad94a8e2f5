package agent

import (
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// What a result repeats of the log, which has the whole. A run of any length must be able to end: its result is one entry of the
// log, and has to be stored and sent.
const (
	maxActionText  = 4 << 10   // each input and each output of a call
	maxActionTexts = 512 << 10 // all of them together
	maxResultList  = 5_000     // calls of tools, calls of models, and files: the last ones
)

// bound cuts what a result repeats down to what it may take, and notes what was cut. Calls are shortened evenly before
// any is left out.
func (s *State) bound(r *messages.AgentResult) {
	var cut []string
	note := func(n int, what string) {
		if n > 0 {
			cut = append(cut, fmt.Sprintf("the first %d %s", n, what))
		}
	}
	note(keepLast(&r.Actions), "tool calls")
	note(keepLast(&r.ModelCalls), "model calls")
	note(keepLast(&r.Outputs), "outputs")
	if limit := shorten(r.Actions); limit < maxActionText {
		cut = append(cut, fmt.Sprintf("inputs and outputs of tool calls beyond %d bytes", limit))
	}
	if len(r.Output) > maxOutputValue {
		r.Output = nil
		cut = append(cut, fmt.Sprintf("output, which is larger than %d bytes", maxOutputValue))
	}
	if n := len(s.Outputs) - len(r.Attachments); n > 0 {
		cut = append(cut, fmt.Sprintf("the last %d attachments", n))
	}
	if s.MetaLost > 0 {
		cut = append(cut, fmt.Sprintf("the meta of the last %d tool calls that had one", s.MetaLost))
	}
	if len(cut) > 0 {
		r.Cut = strings.Join(cut, "; ")
	}
}

// keepLast keeps the end of a list that is too long, and returns how many it dropped.
func keepLast[T any](list *[]T) (dropped int) {
	dropped = max(0, len(*list)-maxResultList)
	*list = (*list)[dropped:]
	return dropped
}

// shorten clips the texts of calls to the largest limit with which all of them together fit, and returns it.
func shorten(all []messages.ActionResult) (limit int) {
	limit = maxActionText
	for texts(all, limit) > maxActionTexts { // 32 bytes are left to each of maxResultList calls
		limit /= 2
	}
	for i := range all {
		a := &all[i]
		a.Input, a.Output = strict.Clip(a.Input, limit), strict.Clip(a.Output, limit)
	}
	return limit
}

func texts(all []messages.ActionResult, limit int) (sum int) {
	for i := range all {
		sum += min(len(all[i].Input), limit) + min(len(all[i].Output), limit)
	}
	return sum
}
