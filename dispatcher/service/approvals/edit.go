package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// edit has a decision approve a call with other arguments, if there are any. The worker that makes the call checks them too, by the
// schema of its tool and by its rules: what is refused here, a person can still mend.
func (ap *Approvals) edit(ctx context.Context, run messages.Ref, asked *messages.Approval, arguments json.RawMessage, d *record.Decided) error {
	if len(arguments) == 0 || messages.HashArguments(string(arguments)) == asked.Hash {
		return nil
	}
	wrong := func(format string, args ...any) error {
		return &messages.FieldError{Field: "arguments", Reason: fmt.Sprintf(format, args...)}
	}
	if !asked.Editable {
		return wrong("this call may only be approved as it is: approve.edit of its agent does not name the tool, or a rule that asks does not have edit")
	}
	text := compacted(arguments)
	if ap.cfg.Redact != nil && ap.cfg.Redact(text) != text {
		return wrong("hold a secret of the dispatcher, which must not be in a log")
	}
	spec, err := ap.specOf(ctx, run, asked.Tool)
	if err != nil {
		return err
	}
	if why := mismatch(spec.InputSchema, text); why != "" {
		return wrong("do not fit the tool %s: %s", strict.Clip(asked.Tool, strict.MaxToken), why)
	}
	d.Asked, d.Hash, d.Arguments = asked.Hash, messages.HashArguments(text), text
	return nil
}

// specOf is a tool as the run knows it.
func (ap *Approvals) specOf(ctx context.Context, run messages.Ref, name string) (messages.ToolSpec, error) {
	for e, err := range ap.cfg.Controller.Log.Read(ctx, run, 0, runlog.Tail) {
		if err != nil {
			return messages.ToolSpec{}, err
		}
		for _, r := range e.Records {
			var known []messages.ToolSpec
			switch r := r.(type) {
			case *record.Started:
				known = r.Tools
			case *record.Claimed:
				known = r.Tools
			}
			if i := slices.IndexFunc(known, func(t messages.ToolSpec) bool { return t.Name == name }); i >= 0 {
				return known[i], nil
			}
		}
	}
	return messages.ToolSpec{}, &messages.FieldError{Field: "arguments", Reason: "cannot be checked: the run does not say what its tool takes"}
}

// maxMismatch bounds what is said of arguments that do not fit, in bytes.
const maxMismatch = 512

// mismatch says how arguments do not fit a schema; empty: they do. Schemas of tools hold no references, so the check ends.
func mismatch(schema json.RawMessage, arguments string) string {
	var root jsonschema.Schema
	if err := json.Unmarshal(schema, &root); err != nil {
		return strict.Clip(err.Error(), maxMismatch)
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		return strict.Clip(err.Error(), maxMismatch)
	}
	var given any
	if err := json.Unmarshal([]byte(arguments), &given); err != nil {
		return strict.Clip(err.Error(), maxMismatch)
	}
	if err := resolved.Validate(given); err != nil {
		return strict.Clip(err.Error(), maxMismatch)
	}
	return ""
}

// madeWith reports whether a decision has these arguments, if any are named.
func madeWith(d *record.Decided, arguments json.RawMessage) bool {
	return len(arguments) == 0 && !d.Edits() || len(arguments) > 0 && d.Hash == messages.HashArguments(string(arguments))
}

func compacted(data json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, data) != nil {
		return string(data)
	}
	return out.String()
}
