// Package scratchpad is the tools with which a model keeps notes while it works: what it found, and what it still has to do. The notes
// are in the run's log and nowhere else, so they need no grant and no server, and survive the loss of any copy. Package
// messages/scratchpad says what a scratchpad is.
package scratchpad

import (
	"context"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/scratchpad"
	"github.com/longshore-run/longshore/tools"
)

const (
	defaultNotes = 50 // that a call returns
	maxNotes     = scratchpad.MaxNotes
)

type appendArgs struct {
	Text   string `json:"text"             jsonschema:"The note, up to 8 KiB"`
	Stream string `json:"stream,omitempty" jsonschema:"Which notes it belongs to, such as findings or todo; default notes"`
}

type readArgs struct {
	Stream string `json:"stream,omitempty" jsonschema:"Only the notes of this stream; default all"`
	After  string `json:"after,omitempty"  jsonschema:"The id of a note: only notes that were written after it"`
	Limit  int    `json:"limit,omitempty"  jsonschema:"How many notes at most, 1 to 256; default the newest 50"`
}

type searchArgs struct {
	Text  string `json:"text"            jsonschema:"Words that all stand in a note"`
	Limit int    `json:"limit,omitempty" jsonschema:"How many notes at most, 1 to 256; default 50"`
}

type clearArgs struct {
	Stream string `json:"stream" jsonschema:"The stream whose notes are removed"`
}

// Tools are scratchpad_append, scratchpad_read, scratchpad_search and scratchpad_clear.
func Tools() ([]tools.Tool, error) {
	spec := func(name, description string, effect messages.Effect) messages.ToolSpec {
		return messages.ToolSpec{Name: name, Description: description, Effect: effect, SafeByDefault: true}
	}
	var made []tools.Tool
	var failed error
	add := func(t tools.Tool, err error) {
		if err != nil && failed == nil {
			failed = err
		}
		made = append(made, t)
	}
	add(tools.FuncOn(spec("scratchpad_append", "Keeps a note for later steps of this task. Use it for what you must not forget.", messages.EffectIdempotent),
		resource[appendArgs], write))
	add(tools.FuncOn(spec("scratchpad_read", "Returns your notes, oldest first.", messages.EffectRead), resource[readArgs], read))
	add(tools.FuncOn(spec("scratchpad_search", "Returns your notes that hold all of some words, newest first.", messages.EffectRead), resource[searchArgs], search))
	add(tools.FuncOn(spec("scratchpad_clear", "Removes all notes of a stream.", messages.EffectIdempotent), resource[clearArgs], erase))
	if failed != nil {
		return nil, failed
	}
	return made, nil
}

// resource has calls on the scratchpad made one after the other, each with the notes of those before it.
func resource[In any](In) string { return "scratchpad" }

func write(_ context.Context, c tools.Call, in appendArgs) (tools.Result, error) {
	n := scratchpad.Note{ID: c.Key, Stream: in.Stream, Text: in.Text}
	if n.Stream == "" {
		n.Stream = scratchpad.DefaultStream
	}
	if err := c.Scratchpad.Check(n); err != nil {
		return tools.Failure(err.Error()), nil
	}
	if c.Remember != nil {
		kept, ok := c.Remember(n.Text)
		if !ok {
			return tools.Failure("The rules of this run allow no notes: nothing was kept."), nil
		}
		n.Text = kept
	}
	evicted := c.Scratchpad.Append(n)
	text := fmt.Sprintf("Kept in %s: note %s.", n.Stream, n.ID)
	if evicted > 0 {
		text += fmt.Sprintf(" Removed to make room for it, the oldest first: %d.", evicted)
	}
	r := tools.Text(text)
	r.Meta = map[string]any{"id": n.ID, "stream": n.Stream, "bytes": len(n.Text), "notes": len(c.Scratchpad.Notes), "evicted": evicted}
	r.Memory = []messages.MemoryChange{{
		Memory: messages.MemoryScratchpad, Op: messages.MemoryAppend, Name: n.Stream, ID: n.ID, Text: n.Text, Bytes: len(n.Text), Evicted: evicted,
	}}
	return r, nil
}

func read(_ context.Context, c tools.Call, in readArgs) (tools.Result, error) {
	limit, err := limited(in.Limit)
	if err == nil && in.Stream != "" {
		err = scratchpad.CheckStream(in.Stream)
	}
	if err != nil {
		return tools.Failure(err.Error()), nil
	}
	return listed(c, c.Scratchpad.Read(scratchpad.ReadOptions{Stream: in.Stream, After: in.After, Limit: limit})), nil
}

func search(_ context.Context, c tools.Call, in searchArgs) (tools.Result, error) {
	limit, err := limited(in.Limit)
	switch {
	case err != nil:
		return tools.Failure(err.Error()), nil
	case strings.TrimSpace(in.Text) == "":
		return tools.Failure("text: must not be empty"), nil
	}
	return listed(c, c.Scratchpad.Search(in.Text, limit)), nil
}

func erase(_ context.Context, c tools.Call, in clearArgs) (tools.Result, error) {
	if err := scratchpad.CheckStream(in.Stream); err != nil {
		return tools.Failure(err.Error()), nil
	}
	removed := c.Scratchpad.Clear(in.Stream)
	r := tools.Text(fmt.Sprintf("Removed %d notes of %s.", removed, in.Stream))
	r.Meta = map[string]any{"stream": in.Stream, "removed": removed}
	if removed > 0 {
		r.Memory = []messages.MemoryChange{{Memory: messages.MemoryScratchpad, Op: messages.MemoryClear, Name: in.Stream, Removed: removed}}
	}
	return r, nil
}

func limited(n int) (int, error) {
	switch {
	case n == 0:
		return defaultNotes, nil
	case n < 0 || n > maxNotes:
		return 0, fmt.Errorf("limit: must be 1 to %d", maxNotes)
	default:
		return n, nil
	}
}

// listed are notes as the model reads them.
func listed(c tools.Call, notes []scratchpad.Note) tools.Result {
	var b strings.Builder
	for _, n := range notes {
		fmt.Fprintf(&b, "[%s] %s: %s\n", n.ID, n.Stream, n.Text)
	}
	if len(notes) == 0 {
		b.WriteString("There are no such notes.")
		if names := c.Scratchpad.Names(); len(names) > 0 {
			b.WriteString(" Streams with notes: " + strings.Join(names, ", ") + ".")
		}
	}
	r := tools.Text(strings.TrimSuffix(b.String(), "\n"))
	r.Meta = map[string]any{"notes": len(notes), "all": len(c.Scratchpad.Notes)}
	return r
}
