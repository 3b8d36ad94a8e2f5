package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/human"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/replay"
)

type sayArgs struct {
	Text string `json:"text"`
}

// speaking is a tool that says what it was told, and remembers it.
func speaking(t *testing.T, name string, said *[]string) tools.Tool {
	t.Helper()
	tool, err := tools.Func(messages.ToolSpec{Name: name, Description: "Says.", Effect: messages.EffectOnce},
		func(_ context.Context, _ tools.Call, in sayArgs) (tools.Result, error) {
			*said = append(*said, in.Text)
			return tools.Text("heard " + in.Text), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// TestPolicyOfAnAgent runs agents with rules through the real loop: what the tool was told, what the log and the events hold, how
// the run ended.
func TestPolicyOfAnAgent(t *testing.T) {
	call := agenttest.Call("say", `{"text":"ask ann@example.com"}`)
	for name, c := range map[string]struct {
		policy  string
		input   string
		replies []agenttest.Reply
		said    string // what reached the tool; empty: nothing
		events  string // the policy's actions and points, in order
		code    messages.Code
		hidden  bool // the address is in no record and no event
	}{
		"no rules": {`{}`, "go", []agenttest.Reply{call, agenttest.Text("done")}, "ask ann@example.com", "", "", false},
		"denied": {
			`{"tools":{"deny":["say"]}}`, "go", []agenttest.Reply{call, agenttest.Text("done")}, "", "block plan", "", false,
		},
		"a redacted argument": {
			`{"content":[{"name":"m","category":"email"}]}`, "go",
			[]agenttest.Reply{call, agenttest.Text("done")},
			"ask [redacted]", "redact arguments", "", true,
		},
		"a blocked argument": {
			`{"content":[{"name":"m","at":["arguments"],"category":"email","action":"block"}]}`, "go",
			[]agenttest.Reply{call, agenttest.Text("done")},
			"", "block arguments", "", false,
		},
		"a redacted result": {
			`{"content":[{"name":"m","at":["output"],"pattern":"heard"}]}`, "go",
			[]agenttest.Reply{call, agenttest.Text("done")},
			"ask ann@example.com", "redact output", "", false,
		},
		"a withheld result": {
			`{"content":[{"name":"m","at":["output"],"pattern":"heard","action":"block"}]}`, "go",
			[]agenttest.Reply{call, agenttest.Text("done")},
			"ask ann@example.com", "block output", "", false,
		},
		"a redacted answer": {
			`{"content":[{"name":"m","at":["reply"],"category":"email"}]}`, "go",
			[]agenttest.Reply{agenttest.Text("it is ann@example.com")},
			"", "redact reply", "", true,
		},
		"a blocked answer": {
			`{"content":[{"name":"m","at":["reply"],"category":"email","action":"block"}]}`, "go",
			[]agenttest.Reply{agenttest.Text("it is ann@example.com")},
			"", "block reply", messages.CodePolicy, true,
		},
		"a redacted input": {
			`{"content":[{"name":"m","at":["input"],"category":"email"}]}`, "write to ann@example.com",
			[]agenttest.Reply{agenttest.Text("done")},
			"", "redact input", "", true,
		},
		"a blocked input": {
			`{"content":[{"name":"m","at":["input"],"category":"email","action":"block"}]}`, "write to ann@example.com",
			[]agenttest.Reply{agenttest.Text("done")},
			"", "block input", messages.CodePolicy, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			var p messages.Policy
			if err := json.Unmarshal([]byte(c.policy), &p); err != nil {
				t.Fatal(err)
			}
			agent := messages.Definition{Name: "a", Tools: []string{"say"}, Policy: &p}
			agent.SetDefaults()
			got := agenttest.Run(t, agenttest.Config{Config: embed.Config{Model: agenttest.Replies(c.replies...), Agent: agent, Tools: []tools.Tool{speaking(t, "say", &said)}}}, c.input)
			if strings.Join(said, "|") != c.said {
				t.Errorf("the tool was told %q, want %q", said, c.said)
			}
			var events []string
			for _, e := range got.Of(messages.EventPolicyViolation) {
				var v messages.PolicyViolation
				if err := json.Unmarshal(e.Data, &v); err != nil {
					t.Fatal(err)
				}
				events = append(events, v.Action+" "+string(v.Point))
			}
			if strings.Join(events, ", ") != c.events {
				t.Errorf("events %q, want %q", events, c.events)
			}
			code := messages.Code("")
			if got.Result.Error != nil {
				code = got.Result.Error.Code
			}
			if code != c.code {
				t.Errorf("the run ended with %q, want %q", code, c.code)
			}
			again, err := replay.Check(t.Context(), func(yield func(record.Entry, error) bool) {
				for _, e := range got.Log {
					if !yield(e, nil) {
						return
					}
				}
			})
			if err != nil || again.Difference != nil {
				t.Errorf("a replay decides otherwise: %+v, %v", again.Difference, err)
			}
			if c.hidden {
				for what, v := range map[string]any{"log": got.Log, "events": got.Events, "result": got.Result} {
					data, err := json.Marshal(v)
					if err != nil {
						t.Fatal(err)
					}
					if strings.Contains(string(data), "ann@example") {
						t.Errorf("the %s holds the address: %s", what, data)
					}
				}
			}
		})
	}
}

// A rule finds an address in a reply that is JSON with escapes: what the answer says when it is read is not what was written.
func TestPolicyOfAnEscapedAnswer(t *testing.T) {
	agent := messages.Definition{Name: "a", Planner: messages.PlannerJSON, Policy: &messages.Policy{
		Content: []messages.ContentRule{{Name: "m", At: []messages.PolicyPoint{messages.PolicyReply}, Category: "email"}},
	}}
	agent.SetDefaults()
	got := agenttest.Run(t, agenttest.Config{Config: embed.Config{
		Agent: agent, Model: agenttest.Replies(agenttest.Text(`{"type":"final","content":"it is ann\u0040example.com"}`)),
	}}, "go")
	if got.Result.Result != "it is [redacted]" || len(got.Of(messages.EventPolicyViolation)) != 1 {
		t.Errorf("the run ended with %+v", got.Result)
	}
}

// What a task brings beside its input is its input too: its plan, its facts and its labels. No secret of the worker and nothing that a
// rule takes out of an input gets into the log with them.
func TestPolicyOfATask(t *testing.T) {
	const secret = "hunter2-hunter2"
	var said []string
	agent := messages.Definition{Name: "a", Tools: []string{"say"}, Policy: &messages.Policy{
		Content: []messages.ContentRule{{Name: "m", At: []messages.PolicyPoint{messages.PolicyInput}, Category: "email"}},
	}}
	agent.SetDefaults()
	cfg := agenttest.Config{
		Config: embed.Config{Agent: agent, Model: agenttest.Replies(), Tools: []tools.Tool{speaking(t, "say", &said)}, Secrets: policy.NewRedactor(secret)},
		Task: messages.Task{
			Context: json.RawMessage(`{"to":"ann@example.com","with":"` + secret + `"}`), Labels: map[string]string{"for": "it " + secret},
			Plan: &messages.Plan{Steps: []messages.PlanStep{
				{ID: "one", Description: "Tell ann@example.com about " + secret + ".", Tool: "say", Args: json.RawMessage(`{"text":"ann@example.com ` + secret + `"}`)},
			}},
		},
	}
	got := agenttest.Run(t, cfg, "go")
	if strings.Join(said, "|") != "[redacted] [redacted]" || got.Result.Error != nil {
		t.Errorf("the tool was told %q; %+v", said, got.Result.Error)
	}
	for what, v := range map[string]any{"log": got.Log, "events": got.Events, "result": got.Result} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, hidden := range []string{secret, "ann@example"} {
			if strings.Contains(string(data), hidden) {
				t.Errorf("the %s holds %s: %s", what, hidden, data)
			}
		}
	}
	if n := len(got.Of(messages.EventPolicyViolation)); n != 1 {
		t.Errorf("%d violations of one rule by one task", n)
	}
	cfg.Agent.Policy.Content[0].Action = messages.PolicyBlock
	cfg.Task.Context = nil
	if got := agenttest.Run(t, cfg, "go"); got.Result.Error == nil || got.Result.Error.Code != messages.CodePolicy {
		t.Errorf("a blocked plan was worked: %+v", got.Result)
	} else if log := fmt.Sprintf("%+v", got.Log[0].Records[0]); strings.Contains(log, "ann@example") {
		t.Errorf("the log holds what was blocked: %s", log)
	}
}

// A prompt is filled in with what is left of a task's facts, and a task that cannot be worked shows no secret either.
func TestPolicyBeforeThePrompt(t *testing.T) {
	const secret = "hunter2-hunter2"
	var store embed.MemoryPrompts
	if _, err := store.Put(messages.Prompt{ID: "greet", Text: "Greet {to} with {with}."}); err != nil {
		t.Fatal(err)
	}
	for id, code := range map[string]messages.Code{"greet": "", "missing": messages.CodeInvalidInput} {
		agent := messages.Definition{Name: "a", Prompt: &messages.PromptRef{ID: id}, Policy: &messages.Policy{
			Content: []messages.ContentRule{{Name: "m", At: []messages.PolicyPoint{messages.PolicyInput}, Category: "email"}},
		}}
		agent.SetDefaults()
		model := agenttest.Replies(agenttest.Text("done"))
		got := agenttest.Run(t, agenttest.Config{
			Config: embed.Config{Agent: agent, Model: model, Prompts: &store, Secrets: policy.NewRedactor(secret)},
			Task:   messages.Task{Context: json.RawMessage(`{"to":"ann@example.com","with":"` + secret + `"}`)},
		}, "tell ann@example.com "+secret)
		if (code == "") != (got.Result.Error == nil) || code != "" && got.Result.Error.Code != code {
			t.Errorf("%s: the run ended with %+v", id, got.Result.Error)
		}
		if code == "" && model.Requests()[0].Messages[0].Text() != "Greet [redacted] with [redacted]." {
			t.Errorf("the model was told %q", model.Requests()[0].Messages[0].Text())
		}
		started, ok := got.Log[0].Records[0].(*record.Started)
		if !ok {
			t.Fatalf("the log begins with %+v", got.Log[0].Records[0])
		}
		started.Raw = nil // a dead letter shows a task as it came
		for what, v := range map[string]any{"log": got.Log, "events": got.Events, "result": got.Result} {
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			for _, hidden := range []string{secret, "ann@example"} {
				if strings.Contains(string(data), hidden) {
					t.Errorf("%s: the %s holds %s: %s", id, what, hidden, data)
				}
			}
		}
	}
}

// The cache of replies keeps what the rules let a memory hold.
func TestPolicyOfTheReplyCache(t *testing.T) {
	for memory, want := range map[string][2]bool{"": {true, false}, messages.MemoryKeep: {true, true}, messages.MemoryDrop: {false, false}} {
		agent := messages.Definition{Name: "a", Policy: &messages.Policy{Memory: memory}}
		agent.SetDefaults()
		model := agenttest.Replies(agenttest.Text("done"))
		agenttest.Run(t, agenttest.Config{Config: embed.Config{Agent: agent, Model: model}}, "go")
		keep := model.Requests()[0].Keep
		if got := [2]bool{keep("All is well."), keep("ask ann@example.com")}; got != want {
			t.Errorf("memory %q: a cache may keep %v, want %v", memory, got, want)
		}
	}
}

// What a person answers is the result of a call, and judged as one before the model is told.
func TestPolicyOfAnAnswer(t *testing.T) {
	const secret = "hunter2-hunter2"
	for action, want := range map[string]string{
		messages.PolicyRedact: "ask [redacted] for [redacted]",
		messages.PolicyBlock:  "The result was withheld: it holds an e-mail address, which is not allowed here (rule m of the agent a).",
	} {
		agent := messages.Definition{Name: "a", Tools: []string{"ask_human"}, Policy: &messages.Policy{
			Content: []messages.ContentRule{{Name: "m", At: []messages.PolicyPoint{messages.PolicyOutput}, Category: "email", Action: action}},
		}}
		agent.SetDefaults()
		asking, err := human.Tools()
		if err != nil {
			t.Fatal(err)
		}
		told := ""
		got := agenttest.Run(t, agenttest.Config{
			Config: embed.Config{
				Agent: agent, Tools: asking, Secrets: policy.NewRedactor(secret),
				Model: agenttest.Func(func(r model.Request) agenttest.Reply {
					last := r.Messages[len(r.Messages)-1]
					if last.Role != messages.RoleTool {
						return agenttest.Call("ask_human", `{"question":"whom?"}`)
					}
					told = last.Content[0].ToolResult.Shown()
					return agenttest.Text("done")
				}),
			},
			Begun: func(s *embed.Session) {
				s.On(func(e messages.Event) {
					if e.Name() == messages.EventRunWaiting {
						go func() {
							if err := s.Answer(context.Background(), "ask ann@example.com for "+secret, false); err != nil {
								t.Error(err)
							}
						}()
					}
				})
			},
		}, "go")
		if told != want || len(got.Of(messages.EventPolicyViolation)) != 1 {
			t.Errorf("%s: the model was told %q, with %d violations", action, told, len(got.Of(messages.EventPolicyViolation)))
		}
	}
}

// A call that the agent and a rule have wait for a person waits once, and the person can see that a rule asks.
func TestPolicyAsksOnceWithTheAgent(t *testing.T) {
	var said []string
	agent := messages.Definition{
		Name: "a", Tools: []string{"say"}, Approve: &messages.Approve{Always: []string{"say"}},
		Policy: &messages.Policy{Approve: []messages.ApproveRule{{Name: "mail", Tool: "say"}}},
	}
	agent.SetDefaults()
	var order []string
	got := agenttest.Run(t, agenttest.Config{
		Config: embed.Config{
			Agent: agent, Tools: []tools.Tool{speaking(t, "say", &said)}, Model: agenttest.Replies(agenttest.Call("say", `{"text":"it"}`), agenttest.Text("done")),
		},
		Begun: func(s *embed.Session) {
			s.On(func(e messages.Event) {
				if e.Name() == messages.EventPolicyViolation || e.Name() == messages.EventApprovalRequested {
					order = append(order, e.Name())
				}
				var a messages.ApprovalRequested
				if e.Name() != messages.EventApprovalRequested || json.Unmarshal(e.Data, &a) != nil {
					return
				}
				go func() {
					if err := s.Approve(context.Background(), a.CallID); err != nil {
						t.Error(err)
					}
				}()
			})
		},
	}, "go")
	if want := messages.EventPolicyViolation + " " + messages.EventApprovalRequested; strings.Join(order, " ") != want || strings.Join(said, "|") != "it" || got.Result.Error != nil {
		t.Errorf("events %q, said %q, %+v", order, said, got.Result.Error)
	}
}

// A host that a tool comes to on its way, such as one that a redirect leads to, is judged by the same rule as one in the arguments.
func TestPolicyOnTheWay(t *testing.T) {
	var said []string
	tool, err := tools.Func(messages.ToolSpec{Name: "say", Description: "Says.", Effect: messages.EffectOnce},
		func(_ context.Context, c tools.Call, in sayArgs) (tools.Result, error) {
			for _, host := range []string{"good.example:443", in.Text} {
				if err := c.Reach(host); err != nil {
					said = append(said, err.Error())
					return tools.Failure(err.Error()), nil
				}
			}
			return tools.Text("there"), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	agent := messages.Definition{Name: "a", Tools: []string{"say"}, Policy: &messages.Policy{Hosts: []string{"good.example"}}}
	agent.SetDefaults()
	got := agenttest.Run(t, agenttest.Config{
		Config: embed.Config{Model: agenttest.Replies(agenttest.Call("say", `{"text":"evil.example:443"}`), agenttest.Text("done")), Agent: agent, Tools: []tools.Tool{tool}},
	}, "go")
	if want := "the host evil.example:443 is not allowed (rule hosts of the agent a)"; strings.Join(said, "|") != want {
		t.Errorf("the tool was told %q, want %q", said, want)
	}
	violations := got.Of(messages.EventPolicyViolation)
	var v messages.PolicyViolation
	if len(violations) != 1 || json.Unmarshal(violations[0].Data, &v) != nil || v.Action != messages.PolicyBlock || v.Rule != "hosts" {
		t.Errorf("violations %+v", violations)
	}
	if got.Result.Result != "done" {
		t.Errorf("result %+v", got.Result)
	}
}

// A redirect to a host whose calls wait for a person is not followed, and the model is told to name the host: then a person is asked.
func TestPolicyOfRedirects(t *testing.T) {
	var said []string
	tool, err := tools.Func(messages.ToolSpec{Name: "get", Description: "Gets.", Effect: messages.EffectOnce},
		func(_ context.Context, c tools.Call, in sayArgs) (tools.Result, error) {
			err := c.Redirect("prod.example:443")
			said = append(said, in.Text)
			if err != nil {
				return tools.Failure(err.Error()), nil
			}
			return tools.Text("there"), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	agent := messages.Definition{Name: "a", Tools: []string{"get"}, Policy: &messages.Policy{
		Approve: []messages.ApproveRule{{Name: "production", Tool: "get", Hosts: []string{"prod.example"}}},
	}}
	agent.SetDefaults()
	asked := 0
	got := agenttest.Run(t, agenttest.Config{
		Config: embed.Config{Agent: agent, Tools: []tools.Tool{tool}, Model: agenttest.Replies(
			agenttest.Call("get", `{"text":"https://a.example"}`), agenttest.Call("get", `{"text":"https://prod.example"}`), agenttest.Text("done"),
		)},
		Begun: func(s *embed.Session) {
			s.On(func(e messages.Event) {
				var a messages.ApprovalRequested
				if e.Name() != messages.EventApprovalRequested || json.Unmarshal(e.Data, &a) != nil {
					return
				}
				asked++
				go func() {
					if err := s.Approve(context.Background(), a.CallID); err != nil {
						t.Error(err)
					}
				}()
			})
		},
	}, "go")
	var results []string
	for _, e := range got.Log {
		for _, r := range e.Records {
			if r, ok := r.(*record.ToolReturned); ok {
				results = append(results, r.Result.Shown())
			}
		}
	}
	const refused = "a person must agree to calls of the host prod.example:443, so name it in the call (rule production of the agent a)"
	if strings.Join(results, "|") != refused+"|there" || asked != 1 {
		t.Errorf("results %q, asked %d times", results, asked)
	}
}

// A call that a rule holds waits for a person, once; after a consent it is made.
func TestPolicyAsksForApproval(t *testing.T) {
	var said []string
	agent := messages.Definition{Name: "a", Tools: []string{"say", "read"}, Policy: &messages.Policy{
		Approve: []messages.ApproveRule{{Name: "mail", Tool: "say", First: true}},
		Taint:   &messages.TaintRule{Private: []string{"read"}, Untrusted: []string{"say"}, Egress: []string{"say"}},
	}}
	agent.SetDefaults()
	asked := 0
	got := agenttest.Run(t, agenttest.Config{
		Config: embed.Config{
			Agent: agent, Tools: []tools.Tool{speaking(t, "say", &said), speaking(t, "read", &said)},
			Model: agenttest.Replies(
				agenttest.Call("say", `{"text":"first"}`), agenttest.Call("say", `{"text":"second"}`), // the second is free
				agenttest.Call("read", `{"text":"private"}`), agenttest.Call("say", `{"text":"third"}`), // and then the run is tainted
				agenttest.Text("done"),
			),
		},
		Begun: func(s *embed.Session) {
			s.On(func(e messages.Event) {
				if e.Name() != messages.EventApprovalRequested {
					return
				}
				asked++
				var a messages.ApprovalRequested
				if err := json.Unmarshal(e.Data, &a); err != nil {
					t.Error(err)
				}
				go func() {
					if err := s.Approve(context.Background(), a.CallID); err != nil {
						t.Error(err)
					}
				}()
			})
		},
	}, "go")
	if strings.Join(said, " ") != "first second private third" || asked != 2 || got.Result.Error != nil {
		t.Errorf("said %q, asked %d times, %+v", said, asked, got.Result.Error)
	}
	var rules []string
	for _, e := range got.Log {
		for _, r := range e.Records {
			if p, ok := r.(*record.PolicyApplied); ok {
				rules = append(rules, p.Rule)
			}
		}
	}
	if strings.Join(rules, " ") != "mail taint" {
		t.Errorf("rules %v", rules)
	}
}

// Rules judge a result before a long one is kept in a file, and what a tool says about it besides the text.
func TestPolicyOfALongResult(t *testing.T) {
	dir := t.TempDir()
	tool, err := tools.Func(messages.ToolSpec{Name: "say", Description: "Says.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, sayArgs) (tools.Result, error) {
			r := tools.Text(strings.Repeat("line after line. ", 10_000) + "ann@example.com")
			r.Meta = map[string]any{"by": "ann@example.com", "lines": 10_000}
			return r, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	agent := messages.Definition{Name: "a", Tools: []string{"say"}, Policy: &messages.Policy{
		Content: []messages.ContentRule{{Name: "m", Tools: []string{"say"}, Category: "email"}},
	}}
	agent.SetDefaults()
	got := agenttest.Run(t, agenttest.Config{
		Config: embed.Config{Model: agenttest.Replies(agenttest.Call("say", `{"text":""}`), agenttest.Text("done")), Agent: agent, Tools: []tools.Tool{tool}}, Files: dir,
	}, "go")
	files, err := filepath.Glob(filepath.Join(dir, "tool-results", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the result is kept in %v, %v", files, err)
	}
	kept, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(kept), " [redacted]") || strings.Contains(string(kept), "ann@") {
		t.Errorf("the file ends with %q", kept[len(kept)-40:])
	}
	data, err := json.Marshal(got.Events)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "ann@") || !strings.Contains(string(data), `"lines":10000`) {
		t.Errorf("events %s", data)
	}
	if n := len(got.Of(messages.EventPolicyViolation)); n != 1 {
		t.Errorf("%d violations of one rule by one result", n)
	}
}
