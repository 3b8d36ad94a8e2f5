package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

func parse(t *testing.T, script string) *scripted.Provider {
	t.Helper()
	s, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return scripted.New(s)
}

func ask(text string) []messages.Message {
	return []messages.Message{
		{Role: messages.RoleSystem, Content: messages.TextContent("be brief")},
		{Role: messages.RoleUser, Content: messages.TextContent(text)},
	}
}

// play collects a call.
func play(ctx context.Context, p model.Provider, r model.Request) (pieces []string, reply *model.Reply, err error) {
	for d, e := range p.Stream(ctx, r) {
		if d.Text != "" {
			pieces = append(pieces, d.Text)
		}
		if d.Reply != nil {
			reply = d.Reply
		}
		err = e
	}
	return pieces, reply, err
}

const story = `
model: rehearsal
scenes:
  - match: weather
    turns:
      - text: Let me look.
        chunk: 5
        calls:
          - name: read_file
            arguments: {filePath: weather.txt, when: 2026-01-02, n: 3, ok: true, none: null, x: 1.5, say: "<${task}>"}
          - name: read_file
            arguments: '{"filePath":'
          - name: list_files
      - text: "It says: ${lastToolResult} ${HOME}"
        usage: {input: 12, output: 7, cacheRead: 3}
  - match: outage
    turns:
      - text: So far
        error: {class: rate_limited, message: slow down, status: 429, retryAfter: 2s}
  - match: cut
    turns: [{text: Half a, truncate: true}]
  - match: long
    turns: [{text: abc, stop: length}]
  - match: mute
    turns: [{text: ""}]
  - match: näive
    turns: [{text: "äöü€", chunk: 1}]
  - tools: [nap]
    match: tired
    turns: [{text: with a nap}]
  - repeat: true
    turns:
      - text: tick
        calls: [{name: list_files}]
      - text: tock
        calls: [{name: list_files}]
`

func TestTurns(t *testing.T) {
	p := parse(t, story)
	pieces, reply, err := play(t.Context(), p, model.Request{Messages: ask("the weather?")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Let m", "e loo", "k."}, pieces); diff != "" {
		t.Error(diff)
	}
	want := &model.Reply{
		Message: messages.Message{Role: messages.RoleAssistant, Content: []messages.Block{
			{Text: "Let me look."},
			{ToolCall: &messages.ToolCall{
				ID: "call_1_1", Name: "read_file",
				Arguments: `{"filePath":"weather.txt","n":3,"none":null,"ok":true,"say":"<the weather?>","when":"2026-01-02","x":1.5}`,
			}},
			{ToolCall: &messages.ToolCall{ID: "call_1_2", Name: "read_file", Arguments: `{"filePath":`}},
			{ToolCall: &messages.ToolCall{ID: "call_1_3", Name: "list_files", Arguments: `{}`}},
		}},
		Stop: messages.StopToolCalls, Usage: messages.Usage{Input: 5, Output: 40, Total: 45},
		Provider: "scripted", Model: "rehearsal",
	}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Error(diff)
	}

	after := append(ask("the weather?"), reply.Message, messages.Message{
		Role: messages.RoleTool, Content: []messages.Block{
			{ToolResult: &messages.ToolResult{CallID: "call_1_1", Content: messages.TextContent("first")}},
			{ToolResult: &messages.ToolResult{CallID: "call_1_2", Content: messages.TextContent("rain, ${task}")}},
		},
	})
	_, reply, err = play(t.Context(), p, model.Request{Messages: after, Model: "another"})
	if err != nil {
		t.Fatal(err)
	}
	want = &model.Reply{
		Message: messages.Message{
			Role: messages.RoleAssistant, Content: messages.TextContent("It says: rain, ${task} ${HOME}"),
		},
		Stop: messages.StopEnd, Usage: messages.Usage{Input: 12, Output: 7, CacheRead: 3, Total: 19},
		Provider: "scripted", Model: "another",
	}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Error(diff)
	}

	_, reply, err = play(t.Context(), p, model.Request{Messages: append(after, reply.Message)})
	var e *model.Error
	if reply != nil || !errors.As(err, &e) || e.Class != model.InvalidRequest || !strings.Contains(e.Detail, "scenes[0]") {
		t.Errorf("a turn too many gave %v, %v", reply, err)
	}
}

func TestScenes(t *testing.T) {
	for _, tt := range []struct {
		name, task string
		tools      []messages.ToolSpec
		played     int
		text       string
		stop       messages.StopReason
	}{
		{"length", "long", nil, 0, "abc", messages.StopLength},
		{"empty text", "mute", nil, 0, "", messages.StopEnd},
		{"a scene whose tools are not offered does not play", "tired", nil, 0, "tick", messages.StopToolCalls},
		{"a scene whose tools are offered plays", "tired", []messages.ToolSpec{{Name: "nap"}}, 0, "with a nap", messages.StopEnd},
		{"a repeating scene begins again", "anything", nil, 41, "tock", messages.StopToolCalls},
		{"and again", "anything", nil, 42, "tick", messages.StopToolCalls},
		{"pieces end at runes", "näive", nil, 0, "äöü€", messages.StopEnd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ms := ask(tt.task)
			for range tt.played {
				ms = append(ms, messages.Message{Role: messages.RoleAssistant})
			}
			pieces, reply, err := play(t.Context(), parse(t, story), model.Request{Messages: ms, Tools: tt.tools})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(pieces, ""); got != tt.text || reply.Message.Text() != tt.text {
				t.Errorf("streamed %q, replied %q, want %q", got, reply.Message.Text(), tt.text)
			}
			for _, p := range pieces {
				if strings.ToValidUTF8(p, "?") != p {
					t.Errorf("piece %q is cut inside a rune", p)
				}
			}
			if reply.Stop != tt.stop {
				t.Errorf("stop %q, want %q", reply.Stop, tt.stop)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		task, text string
		want       *model.Error
	}{
		{"outage", "So far", &model.Error{
			Class: model.RateLimited, Status: 429, Detail: "slow down", RetryAfter: 2 * time.Second,
		}},
		{"cut", "Half a", &model.Error{Class: model.Truncated, Detail: "the script cuts the stream here"}},
	} {
		pieces, reply, err := play(t.Context(), parse(t, story), model.Request{Messages: ask(tt.task)})
		if got := strings.Join(pieces, ""); got != tt.text {
			t.Errorf("%s: streamed %q, want %q", tt.task, got, tt.text)
		}
		var e *model.Error
		if errors.As(err, &e); reply != nil {
			t.Errorf("%s: a reply comes with the error", tt.task)
		}
		if diff := cmp.Diff(tt.want, e); diff != "" {
			t.Errorf("%s: %s", tt.task, diff)
		}
	}
}

func TestNoScene(t *testing.T) {
	_, _, err := play(t.Context(), parse(t, "scenes: [{match: x, turns: [{text: a}]}]"), model.Request{Messages: ask("?")})
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.InvalidRequest || e.Hint == "" {
		t.Errorf("got %v", err)
	}
}

func TestDelayAndPause(t *testing.T) {
	p := parse(t, "scenes: [{turns: [{text: abcdef, chunk: 2, delay: 3s, pause: 1s}]}]")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		for range p.Stream(t.Context(), model.Request{Messages: ask("x")}) {
			at = append(at, time.Since(began))
		}
		want := []time.Duration{3 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Error(diff)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		time.AfterFunc(3500*time.Millisecond, func() { cancel(cause) })
		pieces, reply, err := play(ctx, p, model.Request{Messages: ask("x")})
		if !errors.Is(err, cause) || reply != nil || len(pieces) != 1 || time.Since(began) != 3500*time.Millisecond {
			t.Errorf("got %q, %v, %v after %s", pieces, reply, err, time.Since(began))
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"nothing", "", "the file is empty"},
		{"no scenes", "model: x", "scenes: needs at least one"},
		{"unknown field", "scenes:\n  - turns:\n      - txt: a", "line 3"},
		{"broken YAML", "scenes: [}", "line 1"},
		{"two documents", "scenes: [{turns: [{text: a}]}]\n---\n{}", "a second YAML document begins on line 3"},
		{"no turns", "scenes: [{match: x}]", "scenes[0].turns: needs"},
		{"empty turn", "scenes: [{turns: [{chunk: 3}]}]", "scenes[0].turns[0]: needs text"},
		{"bad duration", "scenes: [{turns: [{text: a}, {text: a, delay: soon}]}]", `scenes[0].turns[1].delay: "soon"`},
		{"negative pause", "scenes: [{turns: [{text: a, pause: -1s}]}]", "turns[0].pause: must be"},
		{"negative chunk", "scenes: [{turns: [{text: a, chunk: -1}]}]", "turns[0].chunk"},
		{"unknown class", "scenes: [{turns: [{error: {class: rate-limited}}]}]", `error.class: "rate-limited" is not one of [rate_limited`},
		{"unknown stop", "scenes: [{turns: [{text: a, stop: halt}]}]", `turns[0].stop: "halt"`},
		{"negative usage", "scenes: [{turns: [{text: a, usage: {input: -1}}]}]", "turns[0].usage"},
		{"error and truncate", "scenes: [{turns: [{truncate: true, error: {class: auth}}]}]", "both error and truncate"},
		{"calls of a failure", "scenes: [{turns: [{truncate: true, calls: [{name: x}]}]}]", "turns[0].calls"},
		{"call without name", "scenes: [{turns: [{calls: [{arguments: {}}]}]}]", "calls[0].name"},
		{"arguments are a list", "scenes: [{turns: [{calls: [{name: x, arguments: [1]}]}]}]", "calls[0].arguments: must be a map or a string (line 1)"},
		{"not JSON", "scenes: [{turns: [{calls: [{name: x, arguments: {a: .nan}}]}]}]", "a number is not finite"},
		{"unreachable scene", "scenes: [{turns: [{text: a}]}, {match: x, turns: [{text: a}]}]", "scenes[1]: never plays"},
		{"too large", "# " + strings.Repeat("x", 1<<20), "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := scripted.Parse([]byte(tt.script))
			if s != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestDemo(t *testing.T) {
	p := scripted.New(scripted.Demo())
	tools := []messages.ToolSpec{{Name: "list_files"}, {Name: "read_file"}, {Name: "write_file"}}
	ms := ask("Plant a \"tree\"\nand water it.")
	var names []string
	for step := range 3 {
		_, reply, err := play(t.Context(), p, model.Request{Messages: ms, Tools: tools})
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		ms = append(ms, reply.Message)
		for _, c := range reply.Message.Calls() {
			var args map[string]string
			if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
				t.Fatalf("arguments %s: %v", c.Arguments, err)
			}
			if c.Name == "write_file" && !strings.Contains(args["content"], "Plant a \"tree\"\nand water it.") {
				t.Errorf("the file lacks the task: %q", args["content"])
			}
			names = append(names, c.Name)
			ms = append(ms, messages.Message{Role: messages.RoleTool, Content: []messages.Block{{
				ToolResult: &messages.ToolResult{CallID: c.ID, Content: messages.TextContent("longshore-demo.md")},
			}}})
		}
	}
	if diff := cmp.Diff([]string{"write_file", "list_files"}, names); diff != "" {
		t.Error(diff)
	}
	answer := ms[len(ms)-1]
	for _, want := range []string{"scripted model", "no model has worked on it", "\nlongshore-demo.md\n", "OPENAI_API_KEY"} {
		if !strings.Contains(answer.Text(), want) {
			t.Errorf("the answer lacks %q: %s", want, answer.Text())
		}
	}

	_, reply, err := play(t.Context(), p, model.Request{Messages: ask("hello")})
	if err != nil || len(reply.Message.Calls()) != 0 || !strings.Contains(reply.Message.Text(), "scripted model") {
		t.Errorf("without tools: %v, %v", reply, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(story), "weather")
	f.Add([]byte("scenes: [{repeat: true, turns: [{text: a}]}]"), "x")
	f.Fuzz(func(t *testing.T, script []byte, task string) {
		s, err := scripted.Parse(script)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // a script may wait for an hour
		defer cancel()
		_, reply, err := play(ctx, scripted.New(s), model.Request{Messages: ask(task)})
		if (reply == nil) == (err == nil) {
			t.Errorf("reply %v and error %v", reply, err)
		}
	})
}

// The script of the documentation plays.
func TestScriptOfTheDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "## The scripted model")
	_, script, found := strings.Cut(section, "```yaml\n")
	script, _, closed := strings.Cut(script, "```")
	if !ok || !found || !closed {
		t.Fatal("there is none")
	}
	if _, err := scripted.Parse([]byte(script)); err != nil {
		t.Error(err)
	}
}
