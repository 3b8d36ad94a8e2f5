package agent_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

var jsonAgent = messages.Definition{Planner: messages.PlannerJSON}

func TestJSONProtocolPlans(t *testing.T) {
	fails := messages.Definition{Planner: messages.PlannerJSON, OnInvalidOutput: messages.OnErrorFail, OnToolError: messages.OnErrorFail}
	said := func(texts ...string) (out []record.Record) {
		for i, text := range texts {
			out = append(out, step(i+1), replied(i+1, messages.StopEnd, text))
		}
		return out
	}
	const list = `{"type":"tool","name":"list_files","args":{}}`
	back := func(n int, code messages.Code, text string) *record.ToolReturned {
		r := returned(n, "json-1", text)
		r.Code, r.Result.IsError = code, code != ""
		r.Name = "list_files"
		return r
	}
	var seven []record.Record
	for i := 1; i <= 6; i++ {
		r := returned(i, "json-"+string(rune('0'+i)), string(rune('a'+i)))
		seven = append(seven, step(i), replied(i, messages.StopEnd, list), r)
	}
	for name, tc := range map[string]struct {
		def     messages.Definition
		records []record.Record
		want    string
	}{
		"at first it asks the model":  {jsonAgent, nil, "model 1"},
		"a tool":                      {jsonAgent, said(list), "tools"},
		"a tool within white space":   {jsonAgent, said("\n\t " + list + " \r\n"), "tools"},
		"a tool without arguments":    {jsonAgent, said(`{"type":"tool","name":"list_files"}`), "tools"},
		"its result":                  {jsonAgent, append(said(list), back(1, "", "a.txt")), "model 2"},
		"an answer":                   {jsonAgent, said(`{"type":"final","content":"Done."}`), "completed Done."},
		"an empty answer":             {jsonAgent, said(`{"type":"final","content":""}`), "failed (model_invalid_output) the model answered with nothing"},
		"an answer after text":        {jsonAgent, said("Done.", `{"type":"final","content":"Done."}`), "completed Done."},
		"text is told":                {jsonAgent, said("Done."), "model 2"},
		"text may end it":             {fails, said("Done."), "failed (model_invalid_output) Invalid model output format"},
		"six steps":                   {jsonAgent, seven, "failed (max_steps) Exceeded max iterations"},
		"more of them":                {messages.Definition{Planner: messages.PlannerJSON, MaxSteps: 7}, seven, "model 7"},
		"text in every step":          {jsonAgent, said("a", "b", "c", "d", "e", "f"), "failed (max_steps) Exceeded max iterations"},
		"an unknown tool may end it":  {fails, append(said(list), back(1, messages.CodeInvalidInput, `Tool "x" not found. Allowed tools: a, b`)), `failed (model_invalid_output) Tool "x" not found. Allowed tools: a, b`},
		"an unknown tool is told":     {jsonAgent, append(said(list), back(1, messages.CodeInvalidInput, `Tool "x" not found. Allowed tools: a, b`)), "model 2"},
		"a failed tool may end it":    {fails, append(said(list), &record.ToolStarted{Step: 1, Call: messages.ToolCall{ID: "json-1"}}, back(1, messages.CodeToolFailed, "no such file")), "failed (tool_failed) no such file"},
		"a cut reply is a failure":    {jsonAgent, []record.Record{step(1), replied(1, messages.StopLength, list)}, "failed (model_truncated) the reply was cut at the limit of 4096 tokens; raise maxTokens of the agent"},
		"a cut reply may be joined":   {messages.Definition{Planner: messages.PlannerJSON, OnTruncated: messages.TruncatedContinue}, []record.Record{step(1), replied(1, messages.StopLength, `{"type":"final",`), step(2), replied(2, messages.StopEnd, `"content":"Done."}`)}, "completed Done."},
		"a native call is not made":   {jsonAgent, []record.Record{step(1), replied(1, messages.StopToolCalls, list, "a")}, "model 2"},
		"nor beside an answer":        {fails, []record.Record{step(1), replied(1, messages.StopToolCalls, `{"type":"final","content":"x"}`, "a")}, "failed (model_invalid_output) Invalid model output format"},
		"a filtered reply":            {jsonAgent, []record.Record{step(1), replied(1, messages.StopContentFilter, list)}, "failed (model_content_filter) the provider's content filter stopped the reply"},
		"the limit of steps, exactly": {messages.Definition{Planner: messages.PlannerJSON, MaxSteps: 1}, said(`{"type":"final","content":"Done."}`), "completed Done."},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(t, tc.def, hi, tc.records...)
			if got := plan(t, s); got != tc.want {
				t.Errorf("plan: %q, want %q", got, tc.want)
			}
			if a, ok := (agent.JSONProtocol{}).Plan(s).(*agent.CallModel); ok {
				wellFormed(t, a.Messages)
				if a.Tools != nil {
					t.Error("native tools are offered")
				}
			}
		})
	}
}

// Whatever is not strictly of the form is rejected, in the words of the protocol.
func TestJSONProtocolRejects(t *testing.T) {
	for _, text := range []string{
		"", "Done.", "null", `"final"`, "[]", "{}", "42", "{", `{"type":"final"}`, `{"type":"tool"}`, `{"type":1,"content":"x"}`,
		`{"type":"finish","content":"x"}`, `{"type":"Tool","name":"x","args":{}}`, `{"Type":"final","content":"x"}`,
		`{"type":"final","content":7}`, `{"type":"final","content":{"a":1}}`, `{"type":"final","content":null}`,
		`{"type":"final","content":"x","name":"y"}`, `{"type":"final","content":"x","args":{}}`, `{"type":"final","content":"x","more":1}`,
		`{"type":"tool","name":"","args":{}}`, `{"type":"tool","name":["x"],"args":{}}`, `{"type":"tool","name":"x","args":{},"content":"y"}`,
		`{"type":"tool","args":{}}`, `{"type":"tool","name":"x","args":null}`, `{"type":"tool","name":"x","name":"y","args":{}}`,
		`{"type":"tool","name":"x","args":{"a":1,"a":2}}`, `{"type":"tool","name":"x","args":{}} {"type":"final","content":"x"}`,
		"{\"type\":\"tool\",\"name\":\"x\",\"args\":{}}\nI wait.", "I call\n{\"type\":\"tool\",\"name\":\"x\",\"args\":{}}",
		"```json\n{\"type\":\"tool\",\"name\":\"x\",\"args\":{}}\n```", `{'type':'tool','name':'x','args':{}}`,
		`{"type":"tool","name":"x","args":{},}`, "{\"type\":\"final\",\"content\":\"\xff\"}", `{"type":"final","content":"\ud800"}`,
		`{"type":"tool","name":"x","args":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`,
	} {
		s := state(t, jsonAgent, hi, step(1), replied(1, messages.StopEnd, text))
		if len(s.Open) > 0 || s.Answer != "" || !strings.HasPrefix(lastText(s), "Invalid model output format: ") {
			t.Errorf("%.80q: %d calls, answer %q; the model is told %q", text, len(s.Open), s.Answer, lastText(s))
		}
		if got := plan(t, s); got != "model 2" {
			t.Errorf("%.80q: %s", text, got)
		}
	}
}

func TestJSONProtocolConversation(t *testing.T) {
	def := jsonAgent
	def.Instructions = "You help."
	tools := []messages.ToolSpec{
		{Name: "list_files", Description: "Lists.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "read_file", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object","required":["filePath"]}`)},
	}
	def.SetDefaults()
	s := &agent.State{}
	img := messages.Block{Image: &messages.Image{MediaType: "image/png", Data: []byte("p")}}
	failed := returned(2, "json-2", "No such file.")
	failed.Result.IsError = true
	shown := returned(1, "json-1", "a.png")
	shown.Result.Content = append(shown.Result.Content, img)
	for _, r := range []record.Record{
		&record.Started{Task: hi, Agent: def, Tools: tools}, &record.Claimed{Claim: "c"},
		step(1), replied(1, messages.StopEnd, `{"type":"tool","name":"list_files","args":{}}`), shown,
		step(2), replied(2, messages.StopEnd, `{"type":"tool","name":"read_file","args":{"filePath":"b"}}`), failed,
	} {
		if err := s.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	a, ok := (agent.JSONProtocol{}).Plan(s).(*agent.CallModel)
	if !ok || a.Format == nil || a.Format.Schema != nil {
		t.Fatalf("%+v", a)
	}
	say := func(role messages.Role, blocks ...messages.Block) messages.Message {
		return messages.Message{Role: role, Content: blocks}
	}
	text := func(s string) messages.Block { return messages.Block{Text: s} }
	want := []messages.Message{
		say(messages.RoleUser, text("hi")),
		say(messages.RoleAssistant, text(`{"type":"tool","name":"list_files","args":{}}`)),
		say(messages.RoleUser, text("Result of list_files:\n"), text("a.png"), img),
		say(messages.RoleAssistant, text(`{"type":"tool","name":"read_file","args":{"filePath":"b"}}`)),
		say(messages.RoleUser, text("Error of read_file:\n"), text("No such file.")),
	}
	if diff := cmp.Diff(want, a.Messages[1:]); diff != "" {
		t.Error(diff)
	}
	system := a.Messages[0].Text()
	for _, part := range []string{
		"You help.\n\n", `{"type": "tool", "name": "NAME OF THE TOOL", "args": {ITS ARGUMENTS}}`, `{"type": "final", "content": "YOUR ANSWER"}`,
		"- list_files: Lists.\n  {\"type\":\"object\"}\n- read_file: Reads.\n  {\"type\":\"object\",\"required\":[\"filePath\"]}",
	} {
		if !strings.Contains(system, part) {
			t.Errorf("the system prompt has no %q:\n%s", part, system)
		}
	}
	if got := s.Conclude(messages.Ref{}, &agent.Finish{}, s.StartedAt).Actions; len(got) != 2 || got[1].Name != "read_file" || got[1].Step != 2 || got[1].OK {
		t.Errorf("actions: %+v", got)
	}
	s.Agent.Prompts = map[string]string{messages.PromptProtocol: "Speak JSON.\n{{tools}}"}
	a, _ = (agent.JSONProtocol{}).Plan(s).(*agent.CallModel)
	if got := a.Messages[0].Text(); !strings.HasPrefix(got, "You help.\n\nSpeak JSON.\n- list_files: Lists.") {
		t.Errorf("own prompt: %s", got)
	}
}

func TestJSONProtocolWithASchema(t *testing.T) {
	def := messages.Definition{Planner: messages.PlannerJSON, OutputSchema: json.RawMessage(numberSchema)}
	for text, want := range map[string]string{
		`{"type":"final","content":{"n":1}}`:                                   `completed {"n":1}`,
		`{"type":"final","content":"{\"n\":1}"}`:                               `completed {"n":1}`,
		`{"type":"final","content":"` + "```json\\n{\\\"n\\\":1}\\n```" + `"}`: `completed {"n":1}`,
		`{"type":"final","content":{"n":"1"}}`:                                 "model 2",
		`{"type":"final","content":"one"}`:                                     "model 2",
		`{"n":1}`:                                                              "model 2",
	} {
		s := state(t, def, hi, step(1), replied(1, messages.StopEnd, text))
		if got := plan(t, s); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		a, ok := (agent.JSONProtocol{}).Plan(s).(*agent.CallModel)
		if ok && !strings.Contains(a.Messages[0].Text(), numberSchema) {
			t.Errorf("the model is not told the schema: %s", a.Messages[0].Text())
		}
	}
}

// Never a panic, and never a call from a reply that is not, white space aside, one object of the form.
func FuzzJSONProtocol(f *testing.F) {
	for _, text := range []string{
		`{"type":"tool","name":"write_file","args":{"filePath":"notes.txt","content":"hi"}}`,
		`{"type":"final","content":"Done."}`, "```json\n{}\n```", `{"type":"tool","name":"x"}`, "{\"type\":\"tool\",\"name\":\"\\u0000\"}", " ",
	} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, native bool) {
		m := messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent(text)}
		if native {
			m.Content = append(m.Content, messages.Block{ToolCall: &messages.ToolCall{ID: "a", Name: "x"}})
		}
		s := state(t, jsonAgent, hi, step(1), &record.ModelReplied{Step: 1, Message: m, Stop: messages.StopEnd})
		_ = agent.JSONProtocol{}.Plan(s)
		if len(s.Open) == 0 {
			return
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(bytes.TrimSpace([]byte(text)), &got); err != nil || native || len(s.Open) != 1 {
			t.Fatalf("%q made %d calls: %v", text, len(s.Open), err)
		}
		var kind, name string
		if json.Unmarshal(got["type"], &kind) != nil || json.Unmarshal(got["name"], &name) != nil || kind != "tool" || name != s.Open[0].Call.Name || got["content"] != nil {
			t.Errorf("%q made a call of %q", text, s.Open[0].Call.Name)
		}
	})
}
