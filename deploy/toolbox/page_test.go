package toolbox_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/scratchpad"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

// definition is the agent of a page.
func definition(t *testing.T, file string) messages.Definition {
	t.Helper()
	doc, err := document.Only([]byte(file), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var agent struct {
		Spec messages.Definition `json:"spec"`
	}
	if err := json.Unmarshal(doc.JSON, &agent); err != nil {
		t.Fatal(err)
	}
	return agent.Spec
}

// played makes the calls of a page, a line each, and compares what the tools answer with the lines below it: those of a result begin
// with >, those of a failure with !. Each call has the notes of those before it.
func played(t *testing.T, set *tools.Set, agent messages.Definition, page, session string, files ...*sandbox.Workspace) {
	t.Helper()
	specs, err := set.Specs(agent.Tools)
	if err != nil {
		t.Fatal(err)
	}
	var ws *sandbox.Workspace
	if len(files) > 0 {
		ws = files[0]
	}
	var got strings.Builder
	var notes scratchpad.Pad
	calls := 0
	for line := range strings.Lines(page + "\n") {
		tool, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if tool == ">" || tool == "!" {
			continue
		}
		raw, refusal := set.Check(messages.ToolCall{Name: tool, Arguments: args}, specs)
		if refusal != nil {
			t.Fatalf("%s: %s", line, refusal.Content[0].Text)
		}
		calls++
		r, err := set.Call(t.Context(), tool, tools.Call{
			Run: messages.Ref{Tenant: "t", Run: "r"}, Agent: "a", Session: session, Grants: agent.GrantOf(), Key: "t.r.1.c" + strconv.Itoa(calls), Arguments: raw,
			Workspace: ws, Scratchpad: notes.Clone(),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Memory {
			switch c.Op {
			case messages.MemoryAppend:
				notes.Append(scratchpad.Note{ID: c.ID, Stream: c.Name, Text: c.Text})
			case messages.MemoryClear:
				notes.Clear(c.Name)
			}
		}
		mark := "> "
		if r.IsError {
			mark = "! "
		}
		got.WriteString(line)
		for l := range strings.SplitSeq(r.Content[0].Text, "\n") {
			got.WriteString(mark + l + "\n")
		}
	}
	if diff := cmp.Diff(page+"\n", got.String()); diff != "" {
		t.Errorf("example (-page +tools):\n%s", diff)
	}
}
