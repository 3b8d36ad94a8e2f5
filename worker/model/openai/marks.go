package openai

import (
	"encoding/json"
	"strings"
)

// Marks that servers without a parser for the model leave in the text.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	callOpen   = "<tool_call>"
	callClose  = "</tool_call>"
)

// marks takes reasoning and tool calls out of text that comes in pieces. Reasoning counts only at the beginning of
// the text. A call counts only when it names a tool that was offered; what looks like one and is none stays text.
type marks struct {
	tools map[string]bool // offered; empty: calls are not looked for
	state markState
	held  string          // not judged yet
	body  strings.Builder // of the call that has begun
}

type markState int

const (
	atBeginning markState = iota
	inReasoning
	afterReasoning // white space belongs to neither
	inText
	inCall
)

// marked is what a piece of text came to.
type marked struct {
	text, reasoning string
	calls           []wireCall
}

// write takes the next piece.
func (m *marks) write(s string) (out marked) {
	if m.held == "" && m.state == inText && (len(m.tools) == 0 || strings.IndexByte(s, '<') < 0) {
		out.text = s // nearly all
		return out
	}
	m.held += s
	for m.step(&out) {
	}
	return out
}

// end takes what is held back: nothing follows.
func (m *marks) end() (out marked) {
	rest := m.held
	m.held = ""
	switch m.state {
	case inReasoning:
		out.reasoning = rest
	case inCall:
		m.body.WriteString(rest)
		m.call("", &out)
	default:
		out.text = rest
	}
	return out
}

// step judges as much of what is held as it can, and reports whether to continue.
func (m *marks) step(out *marked) bool {
	switch m.state {
	case atBeginning:
		trimmed := strings.TrimLeft(m.held, " \t\r\n")
		if strings.HasPrefix(trimmed, thinkOpen) {
			m.state, m.held = inReasoning, trimmed[len(thinkOpen):]
			return true
		}
		if strings.HasPrefix(thinkOpen, trimmed) && len(m.held) < maxLead {
			return false
		}
		m.state = inText
		return true
	case inReasoning:
		before, after, found := strings.Cut(m.held, thinkClose)
		if !found {
			before, after = hold(m.held, thinkClose)
		}
		out.reasoning += before
		if m.held = after; found {
			m.state = afterReasoning
		}
		return found
	case afterReasoning:
		if m.held = strings.TrimLeft(m.held, " \t\r\n"); m.held != "" {
			m.state = inText
		}
		return m.held != ""
	case inText:
		before, after, found := strings.Cut(m.held, callOpen)
		switch {
		case len(m.tools) == 0:
			before, after, found = m.held, "", false
		case !found:
			before, after = hold(m.held, callOpen)
		}
		out.text += before
		if m.held = after; found {
			m.state = inCall
		}
		return found
	default:
		before, after, found := strings.Cut(m.held, callClose)
		if !found {
			before, after = hold(m.held, callClose)
		}
		m.body.WriteString(before)
		m.held = after
		switch {
		case found:
			m.call(callClose, out)
		case m.body.Len() <= maxArguments:
			return false
		default:
			out.text += callOpen + m.body.String()
			m.body.Reset()
		}
		m.state = inText
		return true
	}
}

// maxLead is how much white space is waited through for the first word.
const maxLead = 64

// hold splits s before the longest end of it that may be the beginning of a mark.
func hold(s, mark string) (before, held string) {
	for n := min(len(mark)-1, len(s)); n > 0; n-- {
		if strings.HasSuffix(s, mark[:n]) {
			return s[:len(s)-n], s[len(s)-n:]
		}
	}
	return s, ""
}

// call reads the inside of a mark that ended as given.
func (m *marks) call(end string, out *marked) {
	body := m.body.String()
	m.body.Reset()
	var c wireFunction
	if json.Unmarshal([]byte(body), &c) != nil || !m.tools[string(c.Name)] {
		out.text += callOpen + body + end
		return
	}
	call := wireCall{whole: true}
	call.Function.value, call.Function.ok = c, true
	out.calls = append(out.calls, call)
}
