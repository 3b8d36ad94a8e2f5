package openai

import (
	"encoding/json"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// wireChunk is what a provider may send, in a stream or as a whole.
type wireChunk struct {
	Object  looseString            `json:"object"`
	Model   looseString            `json:"model"`
	Choices looseList[wireChoice]  `json:"choices"`
	Usage   looseObject[wireUsage] `json:"usage"`
	Groq    looseObject[wireGroq]  `json:"x_groq"`
	Error   json.RawMessage        `json:"error"`
	Detail  json.RawMessage        `json:"detail"`
	Message json.RawMessage        `json:"message"`
	Type    looseString            `json:"type"`
}

type wireGroq struct {
	Usage looseObject[wireUsage] `json:"usage"`
}

type wireChoice struct {
	Index        looseInt               `json:"index"`
	Delta        looseObject[wireDelta] `json:"delta"`
	Message      looseObject[wireDelta] `json:"message"` // instead of Delta in a reply in one piece
	FinishReason looseString            `json:"finish_reason"`
	Error        json.RawMessage        `json:"error"`
}

type wireDelta struct {
	Content          looseText                             `json:"content"`
	Refusal          looseText                             `json:"refusal"`
	ReasoningContent looseText                             `json:"reasoning_content"`
	Reasoning        looseText                             `json:"reasoning"`
	ReasoningDetails looseList[map[string]json.RawMessage] `json:"reasoning_details"`
	ToolCalls        looseList[wireCall]                   `json:"tool_calls"`
}

type wireCall struct {
	Index    looseInt                  `json:"index"`
	ID       looseString               `json:"id"`
	Function looseObject[wireFunction] `json:"function"`
	Extra    json.RawMessage           `json:"extra_content"`
	whole    bool                      // nothing else belongs to it
}

type wireFunction struct {
	Name      looseString    `json:"name"`
	Arguments looseArguments `json:"arguments"`
}

type wireUsage struct {
	PromptTokens     looseInt `json:"prompt_tokens"`
	CompletionTokens looseInt `json:"completion_tokens"`
	TotalTokens      looseInt `json:"total_tokens"`
	CacheHitTokens   looseInt `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptDetails    looseObject[struct {
		CachedTokens     looseInt `json:"cached_tokens"`
		CacheWriteTokens looseInt `json:"cache_write_tokens"`
	}] `json:"prompt_tokens_details"`
	CompletionDetails looseObject[struct {
		ReasoningTokens looseInt `json:"reasoning_tokens"`
	}] `json:"completion_tokens_details"`
}

// delta is a piece of a reply in canonical form: text, reasoning, and calls that place has told apart.
type delta = api.ChatCompletionStreamChoiceDelta

// normal turns the events of one reply into canonical form; what is no text and no call goes to the exchange.
type normal struct {
	x       *exchange
	calls   callTracker
	marks   marks
	choices bool // one has been seen
}

// finished reports whether a finish reason has been seen.
func (n *normal) finished() bool { return n.x.finish != "" }

// chunk reads an event. Its error is a *fault when the provider reports one.
func (n *normal) chunk(ev httpstream.Event) (delta, error) {
	if ev.Name == "ping" || ev.Name == "keepalive" || ev.Name == "heartbeat" {
		return delta{}, nil
	}
	if ev.Name == "error" {
		f := parseFault(ev.Data)
		return delta{}, &f
	}
	if len(ev.Data) > 0 && ev.Data[0] != '{' {
		if !json.Valid(ev.Data) {
			var v any
			return delta{}, json.Unmarshal(ev.Data, &v)
		}
		return delta{}, nil // such as "", null or true: a ping
	}
	var c wireChunk
	if err := json.Unmarshal(ev.Data, &c); err != nil {
		return delta{}, err
	}
	if c.isFault(ev.Name) {
		f := parseFault(ev.Data)
		return delta{}, &f
	}
	if c.Model != "" && len(c.Model) <= maxCallName {
		n.x.model = string(c.Model)
	}
	n.count(&c)
	for i := range c.Choices {
		if c.Choices[i].Index.n == 0 { // one choice is asked for
			return n.choice(&c.Choices[i])
		}
	}
	return delta{}, nil
}

// isFault reports whether a chunk is an error, or holds one beside a choice. A text alone is one unless the event is named
// for something else, such as a server's progress.
func (c *wireChunk) isFault(name string) bool {
	if holdsFault(c.Error) || c.Object == "error" || c.Type == "error" {
		return true
	}
	for i := range c.Choices {
		if holdsFault(c.Choices[i].Error) || c.Choices[i].FinishReason == "error" {
			return true
		}
	}
	other := name != "" && name != "message" && !strings.Contains(name, "error")
	return !other && len(c.Choices) == 0 && (holdsFault(c.Detail) || holdsFault(c.Message))
}

// holdsFault is false for the ways to say that there is none.
func holdsFault(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "false":
		return false
	default:
		return true
	}
}

// count keeps the last usage: providers that send several count up.
func (n *normal) count(c *wireChunk) {
	u := c.Usage
	if !u.ok {
		u = c.Groq.value.Usage
	}
	if !u.ok {
		return
	}
	w := &u.value
	n.x.usage = messages.Usage{
		Input: w.PromptTokens.count(), Output: w.CompletionTokens.count(), Total: w.TotalTokens.count(),
		CacheRead:  max(w.PromptDetails.value.CachedTokens.count(), w.CacheHitTokens.count()),
		CacheWrite: w.PromptDetails.value.CacheWriteTokens.count(),
		Reasoning:  w.CompletionDetails.value.ReasoningTokens.count(),
	}
	n.x.usage = withReasoning(n.x.usage)
}

// withReasoning makes Output hold the tokens of reasoning, as OpenAI counts. The APIs of xAI, and of Gemini behind gateways,
// count them on top of it: the total then is the sum of all three, or there is more reasoning than output.
func withReasoning(u messages.Usage) messages.Usage {
	if u.Reasoning > 0 && (u.Total == u.Input+u.Output+u.Reasoning || u.Reasoning > u.Output) {
		u.Output += u.Reasoning
	}
	if u.Total == 0 {
		u.Total = u.Input + u.Output
	}
	return u
}

func (n *normal) choice(c *wireChoice) (delta, error) {
	n.choices = true
	if c.FinishReason != "" {
		n.x.finish = string(c.FinishReason)
	}
	d := &c.Delta.value
	if !c.Delta.ok {
		d = &c.Message.value
	}
	if d.Refusal.text != "" {
		n.x.refused = true
	}
	var out delta
	if err := n.think(d, &out); err != nil {
		return out, err
	}
	said := n.marks.write(d.Content.text)
	said.text += d.Refusal.text
	return n.canonical(out, said, d.ToolCalls)
}

// think keeps the reasoning of a piece. Servers that have several names for it say the same under each.
func (n *normal) think(d *wireDelta, out *delta) error {
	for i := range d.ReasoningDetails {
		text, err := n.x.thoughts.detail(d.ReasoningDetails[i])
		if err != nil {
			return err
		}
		out.ReasoningContent += text
	}
	for _, in := range []struct{ place, text string }{
		{inField, d.ReasoningContent.text}, {inShort, d.Reasoning.text}, {inParts, d.Content.thinking},
	} {
		if in.text != "" {
			out.ReasoningContent = n.x.thoughts.write(in.place, in.text)
			return nil
		}
	}
	return nil
}

// rest is what was held back until the end.
func (n *normal) rest() (delta, error) {
	return n.canonical(delta{}, n.marks.end(), nil)
}

// canonical adds text and calls to the reasoning of a piece.
func (n *normal) canonical(out delta, said marked, calls []wireCall) (delta, error) {
	out.Content = said.text
	out.ReasoningContent += n.x.thoughts.write(inMarks, said.reasoning)
	for _, list := range [][]wireCall{said.calls, calls} {
		for i := range list {
			call, err := n.calls.place(&list[i])
			if err != nil {
				return out, err
			}
			if extra := list[i].Extra; len(extra) > 0 && string(extra) != "null" {
				n.x.thoughts.extra(*call.Index, extra)
			}
			out.ToolCalls = append(out.ToolCalls, call)
		}
	}
	return out, nil
}
