package agent

import (
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Interpreter is a Planner that reads replies itself while they are folded. Pure: the state and the reply alone decide.
// Truncated replies, the output schema and replies that break the rules are then taken care of by the fold.
type Interpreter interface {
	Planner
	// Interpret reads a reply that was not cut. Its text is that of all parts, when it was continued.
	Interpret(s *State, text string, m messages.Message) Reading
}

// Reading is what a planner makes of a reply: calls, an answer or a breach of its rules.
type Reading struct {
	Calls  []messages.ToolCall // to make
	Answer string              // the final one, if there are no calls
	Broken string              // how it breaks the rules; nothing else counts then
	Remedy string              // what the model is told in addition
}

// maxContinued bounds how often in a row the model is asked to continue: what is longer than that has no end.
const maxContinued = 5

const (
	goOn = "Your reply was cut at the token limit. A tool call in it was not made. Go on exactly where it stopped, " +
		"without repeating anything; be brief."
	cutShort = "(cut at the token limit)" // stands for a reply of which nothing is left
	nothing  = "(nothing)"                // stands for a reply that is empty
)

// interpret folds a reply as the planner reads it.
func (s *State) interpret(in Interpreter, r *record.ModelReplied) {
	m := r.Message
	if r.Stop == messages.StopLength {
		s.truncated(m)
		return
	}
	if r.Stop == messages.StopContentFilter || r.Stop == messages.StopError {
		s.say(textOf(m, "")) // the planner says why the run ends
		return
	}
	text := s.Partial + m.Text()
	s.Partial, s.Continued = "", 0
	read := in.Interpret(s, text, m)
	if read.Broken != "" {
		s.say(textOf(m, nothing))
		if s.Agent.OnInvalidOutput == messages.OnErrorFail {
			s.fail(messages.CodeModelInvalidOutput, read.Broken)
			return
		}
		s.ask(read.Broken + read.Remedy)
		return
	}
	if len(read.Calls) > 0 {
		s.say(withCalls(m, read.Calls))
		return
	}
	if m.Text() == "" {
		m = textOf(m, nothing)
	}
	s.say(m)
	s.answered(read.Answer)
}

// truncated folds a reply that was cut at the limit of tokens. Half a call is never made, and no whole one of such a
// reply either: the model may have meant more of them.
func (s *State) truncated(m messages.Message) {
	s.Partial += m.Text()
	s.say(textOf(m, cutShort))
	if s.Agent.OnTruncated != messages.TruncatedContinue || s.Continued == maxContinued || s.last() {
		s.fail(messages.CodeModelTruncated, s.truncatedText())
		return
	}
	s.Continued++
	s.ask(goOn)
}

func (s *State) truncatedText() string {
	text := fmt.Sprintf("the reply was cut at the limit of %d tokens", s.Agent.MaxTokens)
	if s.Continued > 0 {
		text = fmt.Sprintf("%s, %d times in a row", text, s.Continued+1)
	}
	return text + "; raise maxTokens of the agent"
}

// answered folds a final answer, which must fit the output schema. Once, the model may correct it.
func (s *State) answered(answer string) {
	s.Answer = answer
	schema := s.OutputSchema()
	if len(schema) == 0 || answer == "" {
		return
	}
	s.Answer = unfenced(answer)
	wrong := checkOutput(schema, s.Answer)
	switch {
	case wrong == "":
	case s.Corrected:
		s.fail(messages.CodeOutputSchema, "the answer does not fit the output schema, also after a correction: "+wrong)
	case s.last():
		s.fail(messages.CodeOutputSchema, "the answer does not fit the output schema, and no step is left to correct it: "+wrong)
	default:
		s.Corrected = true
		s.warn("step %d: the answer did not fit the output schema and was sent back: %s", s.Step, wrong)
		s.ask("Your answer does not fit the output schema: " + wrong + "\nAnswer again, with all of it.")
	}
}

// last reports whether the run may take no step after this one.
func (s *State) last() bool { return s.Step >= s.Agent.Steps(s.Task.Limits) }

// textOf is a message without its calls, and without what the model thought, which counts only in front of them.
// Nothing is said in the words of empty: providers refuse a message without content.
func textOf(m messages.Message, empty string) messages.Message {
	if m.Text() == "" {
		return messages.Message{Role: m.Role, Content: messages.TextContent(empty)}
	}
	out := messages.Message{Role: m.Role}
	for _, b := range m.Content {
		if b.Text != "" {
			out.Content = append(out.Content, messages.Block{Text: b.Text})
		}
	}
	return out
}

// withCalls is a message whose calls are these.
func withCalls(m messages.Message, calls []messages.ToolCall) messages.Message {
	if len(calls) == len(m.Calls()) {
		return m // they are in it
	}
	out := messages.Message{Role: m.Role, Content: slices.DeleteFunc(slices.Clone(m.Content), func(b messages.Block) bool {
		return b.ToolCall != nil
	})}
	for i := range calls {
		out.Content = append(out.Content, messages.Block{ToolCall: &calls[i]})
	}
	return out
}
