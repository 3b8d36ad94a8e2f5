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
	Stream string `json:"stream,omitempty" jsonschema:"Name of the stream of notes that it belongs to, such as findings or todo; notes by default"`
}

type readArgs struct {
	Stream string `json:"stream,omitempty" jsonschema:"Return only notes of this stream; all by default"`
	After  string `json:"after,omitempty"  jsonschema:"Id of a note: return only the notes after it, to continue a list"`
	Limit  int    `json:"limit,omitempty"  jsonschema:"Notes to return at most: the newest, or with after the next ones; 50 by default, 256 at most"`
}

type searchArgs struct {
	Text  string `json:"text"            jsonschema:"Words; only notes that contain all of them are returned"`
	Limit int    `json:"limit,omitempty" jsonschema:"Notes to return at most; 50 by default, 256 at most"`
}

type clearArgs struct {
	Stream string `json:"stream" jsonschema:"Stream whose notes are removed"`
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
	add(tools.FuncOn(spec("scratchpad_append", "Keeps a note that you can read again in later steps of this task. Use it for findings and open points that you must not forget.", messages.EffectIdempotent),
		resource[appendArgs], write))
	add(tools.FuncOn(spec("scratchpad_read", "Returns your notes, oldest first.", messages.EffectRead), resource[readArgs], read))
	add(tools.FuncOn(spec("scratchpad_search", "Finds your notes by words they contain, and returns them newest first.", messages.EffectRead), resource[searchArgs], search))
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
			return tools.Failure("Nothing was kept: the rules of this run do not allow it."), nil
		}
		n.Text = kept
	}
	evicted := c.Scratchpad.Append(n)
	text := fmt.Sprintf("Kept in %s as %s.", n.Stream, n.ID)
	if evicted > 0 {
		text += fmt.Sprintf(" The oldest notes were removed to make room for it: %d.", evicted)
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
	o := scratchpad.ReadOptions{Stream: in.Stream, After: in.After}
	all := len(c.Scratchpad.Read(o))
	o.Limit, o.Oldest = limit, in.After != ""
	notes := c.Scratchpad.Read(o)
	r := listed(c, notes)
	switch more := all - len(notes); {
	case more > 0 && o.Oldest:
		r.Content[0].Text += fmt.Sprintf("\nMore notes follow: %d. Read them with after %s.", more, notes[len(notes)-1].ID)
	case more > 0:
		r.Content[0].Text += fmt.Sprintf("\nOlder notes that are not shown: %d. Read them with a larger limit.", more)
	}
	return r, nil
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
	r := tools.Text(fmt.Sprintf("Notes removed from %s: %d.", in.Stream, removed))
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
