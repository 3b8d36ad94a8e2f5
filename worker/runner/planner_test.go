package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/files"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
	"github.com/longshore-run/longshore/worker/runner"
)

// theatre is a run over the scripted model, with the file tools and a workspace.
type theatre struct {
	def   messages.Definition
	task  string // its JSON; default: hello
	more  []tools.Tool
	files map[string]string

	asked  []model.Request
	result messages.AgentResult
	state  *agent.State
	events []messages.Event
}

type listening struct {
	model.Provider
	asked *[]model.Request
}

func (l listening) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	*l.asked = append(*l.asked, r)
	return l.Provider.Stream(ctx, r)
}

// play works the task to its end. The lines are the turns of the script: a text as it is, or YAML of a turn.
func (th *theatre) play(t *testing.T, turns ...string) {
	t.Helper()
	var script strings.Builder
	script.WriteString("scenes:\n  - turns:\n")
	for _, turn := range turns {
		fmt.Fprintf(&script, "      - %s\n", turn)
	}
	parsed, err := scripted.Parse([]byte(script.String()))
	if err != nil {
		t.Fatal(err)
	}
	family, err := files.Tools()
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(append(family, th.more...)...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	open := func(messages.Ref) (*sandbox.Workspace, error) { return sandbox.Open(dir, sandbox.Limits{}) }
	th.furnish(t, open)
	th.def.Name = "a"
	if th.def.Tools == nil {
		th.def.Tools = []string{"list_files", "read_file", "write_file"}
	}
	th.def.SetDefaults()
	log := &runlog.Memory{}
	n := 0
	r := runner.New(runner.Config{
		Worker: "w", Model: listening{scripted.New(parsed), &th.asked}, Tools: set, Workspace: open,
		Controller: &runlog.Controller{Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string { n++; return fmt.Sprint("id", n) }},
		Agent:      func(context.Context, string) (messages.Definition, error) { return th.def, nil },
	})
	ticket := rticket(1)
	if th.task != "" {
		ticket.Body = []byte(th.task)
	}
	if out, err := r.Run(t.Context(), ticket); out != runner.Done || err != nil {
		t.Fatalf("%v, %v", out, err)
	}
	th.state = &agent.State{}
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		if err := th.state.Apply(e); err != nil {
			t.Fatal(err)
		}
		th.events = append(th.events, record.Events(rrun, e)...)
		cached, err := th.state.Encode() // another worker may continue at any point
		if err != nil {
			t.Fatal(err)
		}
		if th.state, err = agent.Decode(cached); err != nil {
			t.Fatal(err)
		}
	}
	if th.state.Result == nil {
		t.Fatal("the run has not ended")
	}
	th.result = *th.state.Result
}

func (th *theatre) furnish(t *testing.T, open func(messages.Ref) (*sandbox.Workspace, error)) {
	t.Helper()
	ws, err := open(rrun)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	for name, content := range th.files {
		if err := ws.Write(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
}

// says is the outcome: the answer, or the code and the text of the failure.
func (th *theatre) says() string {
	if th.result.Error != nil {
		return string(th.result.Error.Code) + ": " + th.result.Error.Message
	}
	return fmt.Sprint(th.result.Result)
}

// steps are the calls with their results, as a client of the document would see them.
func (th *theatre) steps() (out []string) {
	for _, a := range th.result.Actions {
		out = append(out, a.Name+" "+a.Input+": "+a.Output)
	}
	return out
}

func said(text string) string { return "text: '" + strings.ReplaceAll(text, "'", "''") + "'" }

// The examples and the checks of the document of the lite agent, word by word.
func TestLiteAgent(t *testing.T) {
	write := `{ "type": "tool", "name": "write_file", "args": { "filePath": "notes.txt", "content": "hi" } }`
	done := `{ "type": "final", "content": "Done." }`
	strict := messages.Definition{
		Planner: messages.PlannerJSON, OnInvalidOutput: messages.OnErrorFail, OnToolError: messages.OnErrorFail,
	}
	lenient := messages.Definition{Planner: messages.PlannerJSON}
	for name, tc := range map[string]struct {
		def   messages.Definition
		turns []string
		want  string
		steps []string
	}{
		"simple tool call (list files)": {
			strict, []string{`{"type":"tool","name":"list_files","args":{}}`, done}, "Done.", []string{"list_files {}: a.txt"},
		},
		"multi-step tool call (write + read)": {
			strict,
			[]string{write, `{"type":"tool","name":"read_file","args":{"filePath":"notes.txt"}}`, done},
			"Done.",
			[]string{
				`write_file { "filePath": "notes.txt", "content": "hi" }: Wrote 2 bytes to notes.txt`,
				`read_file {"filePath":"notes.txt"}: hi`,
			},
		},
		"invalid tool name response": {
			strict,
			[]string{`{"type":"tool","name":"delete_file","args":{}}`, done},
			`model_invalid_output: Tool "delete_file" not found. Allowed tools: list_files, read_file, write_file`,
			[]string{`delete_file {}: Tool "delete_file" not found. Allowed tools: list_files, read_file, write_file`},
		},
		"invalid tool name, told": {
			lenient,
			[]string{`{"type":"tool","name":"delete_file","args":{}}`, done},
			"Done.",
			[]string{`delete_file {}: Tool "delete_file" not found. Allowed tools: list_files, read_file, write_file`},
		},
		"invalid args": {
			strict,
			[]string{`{"type":"tool","name":"read_file","args":{"path":"a.txt"}}`},
			`model_invalid_output: Invalid arguments for read_file: "filePath" is missing; "path" is unknown (known: filePath, limit, offset).`,
			[]string{`read_file {"path":"a.txt"}: Invalid arguments for read_file: "filePath" is missing; "path" is unknown (known: filePath, limit, offset).`},
		},
		"tool execution error": {
			strict, []string{`{"type":"tool","name":"read_file","args":{"filePath":"b.txt"}}`}, "tool_failed: ", nil,
		},
		"model output not JSON":       {strict, []string{"I shall list the files."}, "model_invalid_output: Invalid model output format", nil},
		"model output not JSON, told": {lenient, []string{"I shall list the files.", done}, "Done.", nil},
		"max iterations": {
			lenient, slices.Repeat([]string{`{"type":"tool","name":"list_files","args":{}}`}, 6), "max_steps: Exceeded max iterations", nil,
		},
		"max iterations of text": {lenient, slices.Repeat([]string{"no"}, 6), "max_steps: Exceeded max iterations", nil},
	} {
		t.Run(name, func(t *testing.T) {
			th := theatre{def: tc.def, files: map[string]string{"a.txt": "A"}}
			for i, turn := range tc.turns {
				tc.turns[i] = said(turn)
			}
			th.play(t, tc.turns...)
			if got := th.says(); got != tc.want && (!strings.HasSuffix(tc.want, ": ") || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.steps, th.steps()); tc.steps != nil && diff != "" {
				t.Error(diff)
			}
			for _, r := range th.asked {
				if r.Tools != nil || r.Format == nil || r.Format.Schema != nil {
					t.Errorf("the request has tools %v and format %v", r.Tools, r.Format)
				}
			}
		})
	}
}

func TestNativeLoopEndsRepeats(t *testing.T) {
	th := theatre{files: map[string]string{"a.txt": "A"}}
	turn := `calls: [{name: list_files, arguments: {}}]`
	th.play(t, slices.Repeat([]string{turn}, 6)...)
	if got := th.says(); !strings.HasPrefix(got, "max_steps: the model goes in circles: 6 times in a row the same call of list_files") {
		t.Error(got)
	}
	for i, r := range th.asked {
		last := r.Messages[len(r.Messages)-1]
		told := i > 0 && strings.Contains(last.Content[0].ToolResult.Shown(), fmt.Sprintf("(Note: this call was made %d times", i))
		if told != (i >= 3) {
			t.Errorf("request %d: told %v", i+1, told)
		}
	}
	for _, e := range th.events {
		if strings.Contains(string(e.Data), "(Note: ") {
			t.Errorf("event %s shows the note: %s", e.Name(), e.Data)
		}
	}
}

func TestNativeLoopContinues(t *testing.T) {
	th := theatre{def: messages.Definition{OnTruncated: messages.TruncatedContinue}}
	th.play(t, "{text: 'Half of ', stop: length, calls: [{name: write_file, arguments: {filePath: x, content: y}}]}",
		"{text: 'an answer, and ', stop: length}", "text: the rest")
	if got := th.says(); got != "Half of an answer, and the rest" {
		t.Error(got)
	}
	if len(th.result.Actions) != 0 || th.result.Steps != 3 {
		t.Errorf("%d calls were made in %d steps", len(th.result.Actions), th.result.Steps)
	}
}

func TestNativeLoopChecksTheAnswer(t *testing.T) {
	schema := `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`
	task := `{"input":"hello","outputSchema":` + schema + `}`
	th := theatre{task: task}
	th.play(t, "text: one", `text: "`+"```json\\n{\\\"n\\\":1}\\n```"+`"`)
	if got := th.says(); got != `{"n":1}` {
		t.Error(got)
	}
	for _, r := range th.asked {
		if r.Format == nil || string(r.Format.Schema) != schema || r.Tools == nil {
			t.Errorf("the request's format is %+v", r.Format)
		}
	}
	th = theatre{task: task}
	if th.play(t, "text: one", "text: two"); !strings.HasPrefix(th.says(), "output_schema: ") {
		t.Error(th.says())
	}
	th = theatre{task: task, def: messages.Definition{OutputSchema: json.RawMessage(schema)}}
	if th.play(t, "text: one"); th.says() != "invalid_input: outputSchema: the agent a has one of its own" || th.asked != nil {
		t.Error(th.says())
	}
	th = theatre{def: messages.Definition{OutputSchema: json.RawMessage(`{"type":"object","$ref":"#"}`)}}
	if th.play(t, "text: one"); th.says() != "invalid_input: outputSchema: $ref is not supported: write the schema out" {
		t.Error(th.says())
	}
}

// meet is a read tool whose calls wait for each other, as many as the test wants together.
type meet struct {
	want      int
	now, most *atomic.Int32
	all       *sync.WaitGroup
}

func (m meet) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: "meet", Description: "Meets.", Effect: messages.EffectRead, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (m meet) Call(context.Context, tools.Call) (tools.Result, error) {
	n := m.now.Add(1)
	for most := m.most.Load(); n > most && !m.most.CompareAndSwap(most, n); most = m.most.Load() {
	}
	if m.want > 1 {
		m.all.Done()
		m.all.Wait()
	}
	m.now.Add(-1)
	return tools.Text("met"), nil
}

func TestParallelIsTheAgents(t *testing.T) {
	for parallel, calls := range map[int]int{1: 4, 2: 2, 8: 8} {
		m := meet{parallel, &atomic.Int32{}, &atomic.Int32{}, &sync.WaitGroup{}}
		m.all.Add(parallel)
		th := theatre{def: messages.Definition{Parallel: parallel, Tools: []string{"meet"}}, more: []tools.Tool{m}}
		th.play(t, "calls: ["+strings.Join(slices.Repeat([]string{"{name: meet, arguments: {}}"}, calls), ", ")+"]", "text: ok")
		if got := m.most.Load(); int(got) != parallel || len(th.result.Actions) != calls {
			t.Errorf("parallel %d: %d calls, %d together", parallel, len(th.result.Actions), got)
		}
	}
}

type camera struct{}

func (camera) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: "camera", Description: "Looks.", Effect: messages.EffectRead, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (camera) Call(context.Context, tools.Call) (tools.Result, error) {
	data := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 11_992)...)
	return tools.Result{Content: []messages.Block{{Text: "It shows: "}, {Image: &messages.Image{MediaType: "image/png", Data: data}}}}, nil
}

func TestImagesOfTools(t *testing.T) {
	for _, planner := range []string{messages.PlannerTools, messages.PlannerJSON} {
		th := theatre{def: messages.Definition{Planner: planner, Tools: []string{"camera"}}, more: []tools.Tool{camera{}}}
		if planner == messages.PlannerJSON {
			th.play(t, said(`{"type":"tool","name":"camera","args":{}}`), said(`{"type":"final","content":"seen"}`))
		} else {
			th.play(t, "calls: [{name: camera, arguments: {}}]", "text: seen")
		}
		seen := 0
		for _, b := range th.asked[1].Messages[len(th.asked[1].Messages)-1].Content {
			if b.ToolResult != nil {
				b = b.ToolResult.Content[1]
			}
			if b.Image != nil && len(b.Image.Data) == 12_000 {
				seen++
			}
		}
		if seen != 1 || th.says() != "seen" {
			t.Errorf("%s: the model sees %d images and says %q", planner, seen, th.says())
		}
		shown := false
		for _, e := range th.events {
			shown = shown || e.Name() == messages.EventToolExecutionEnd && strings.Contains(string(e.Data), "It shows: [image png, 12 kB]")
		}
		if !shown {
			t.Errorf("%s: no event shows the image", planner)
		}
	}
}

// Reasoning is in the events of an agent that keeps it, and nowhere else.
func TestReasoningInEvents(t *testing.T) {
	for setting, want := range map[string]bool{"": false, messages.ReasoningDrop: false, messages.ReasoningKeep: true, messages.ReasoningEcho: true} {
		log := &runlog.Memory{}
		th := messages.Definition{Name: "a", Reasoning: setting}
		th.SetDefaults()
		set, err := tools.NewSet()
		if err != nil {
			t.Fatal(err)
		}
		var echo bool
		n := 0
		worker := runner.New(runner.Config{
			Worker: "w", Tools: set,
			Controller: &runlog.Controller{Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string { n++; return fmt.Sprint("id", n) }},
			Model: rmodel(func(_ context.Context, req model.Request) (*model.Reply, error) {
				echo = req.Echo
				reply := say("ok")
				reply.Message.Content = append([]messages.Block{{Reasoning: &messages.Reasoning{Family: "f", Text: "because"}}}, reply.Message.Content...)
				return reply, nil
			}),
			Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, nil },
			Agent:     func(context.Context, string) (messages.Definition, error) { return th, nil },
		})
		if out, err := worker.Run(t.Context(), rticket(1)); out != runner.Done {
			t.Fatal(out, err)
		}
		got := false
		for e := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
			for _, ev := range record.Events(rrun, e) {
				got = got || strings.Contains(string(ev.Data), `"reasoning":"because"`)
			}
		}
		if got != want || echo != (setting == messages.ReasoningEcho) {
			t.Errorf("reasoning %q: in events %v, echoed %v", setting, got, echo)
		}
	}
}
