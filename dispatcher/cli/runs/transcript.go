package runs

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// maxTranscript bounds a transcript that is gathered to be one document, in bytes of its texts.
const maxTranscript = 64 << 20

// showTranscript prints what was said in a run that has ended: as it comes, or as one result in JSON.
func (c runs) showTranscript(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref, output render.Format) error {
	ctx := cmd.Context()
	var whole *messages.AgentResult
	size := 0
	result, err := eachPage(ctx, client, run, func(page *messages.AgentResult) error {
		if !output.JSON {
			return printSaid(cmd.OutOrStdout(), page.Transcript.Messages, c.Options.Raw)
		}
		for i := range page.Transcript.Messages {
			size += sizeSaid(page.Transcript.Messages[i].Content)
		}
		if size > maxTranscript {
			return render.Worded(fmt.Sprintf(
				"the transcript of run %s is larger than %d MiB: print it without -o json, or read it in pages over HTTP", run.Run, maxTranscript>>20), nil)
		}
		if whole == nil {
			whole = page
		} else {
			whole.Transcript.Messages = append(whole.Transcript.Messages, page.Transcript.Messages...)
		}
		return nil
	})
	if err != nil {
		return render.Explain(err, run)
	}
	if whole != nil {
		whole.Transcript.Next = ""
		if err := c.WriteJSON(cmd, whole); err != nil {
			return err
		}
	}
	return tell(cmd, result)
}

// eachPage fetches the transcript of a run page by page, and returns the result that came with the last.
func eachPage(
	ctx context.Context, client *dispatcher.Client, run messages.Ref, each func(*messages.AgentResult) error,
) (*messages.AgentResult, error) {
	for after := ""; ; {
		page, err := client.Runs().ResultWithTranscript(ctx, run, after)
		if err != nil {
			return nil, err
		}
		if page.Transcript == nil {
			return nil, render.Worded("the dispatcher's version does not support transcripts: upgrade it", nil)
		}
		if err := each(page); err != nil {
			return nil, err
		}
		if next := page.Transcript.Next; next != "" && next != after {
			after = next
			continue
		}
		return page, nil
	}
}

func sizeSaid(blocks []messages.Block) (n int) {
	for _, b := range blocks {
		n += len(b.Text)
		switch {
		case b.Reasoning != nil:
			n += len(b.Reasoning.Text)
		case b.ToolCall != nil:
			n += len(b.ToolCall.Arguments)
		case b.ToolResult != nil:
			n += sizeSaid(b.ToolResult.Content)
		}
	}
	return n
}

func printSaid(w io.Writer, all []messages.TranscriptMessage, raw bool) error {
	var b strings.Builder
	for i := range all {
		m := &all[i]
		b.WriteString(string(m.Role))
		if m.Step > 0 {
			fmt.Fprintf(&b, ", step %d", m.Step)
		}
		if m.Recalled {
			b.WriteString(", of an earlier run")
		}
		b.WriteString(":\n")
		for _, block := range m.Content {
			text := saidText(&block)
			if !raw {
				text = render.VisibleLines(text)
			}
			for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
				b.WriteString("  " + line + "\n")
			}
		}
		b.WriteByte('\n')
	}
	return render.Write(w, b.String())
}

// saidText is a part of a message as text.
func saidText(b *messages.Block) string {
	switch {
	case b.Reasoning != nil:
		return "(" + b.Reasoning.Text + ")"
	case b.ToolCall != nil:
		return "calls " + b.ToolCall.Name + " " + b.ToolCall.Arguments
	case b.ToolResult != nil:
		text := b.ToolResult.Shown()
		if b.ToolResult.IsError {
			return "error: " + text
		}
		return text
	default:
		return b.Text
	}
}
