package agent

import "strings"

// hear adds the messages that people sent to the run to the conversation, before the next new model call. A reply that is being
// continued is completed first. The position is deterministic: model calls in progress have not seen the messages, and they never
// stand between a tool call and its result.
func (s *State) hear() {
	if len(s.Unheard) == 0 || s.Continued > 0 {
		return
	}
	if s.Purpose != "" {
		s.Heard = append(s.Heard, s.Unheard...)
	} else {
		for _, text := range s.Unheard {
			s.ask(text)
		}
	}
	s.Unheard = nil
}

const toldHead = "Since the task was given, the user has added (what comes last counts most):\n"

// told is what people told a run with a plan, for each of its calls.
func (r *planRun) told() string {
	if len(r.Heard) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(toldHead)
	for _, text := range r.Heard {
		b.WriteString("- " + strings.ReplaceAll(text, "\n", "\n  ") + "\n")
	}
	return b.String() + "\n"
}
