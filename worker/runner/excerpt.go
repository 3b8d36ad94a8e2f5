package runner

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

const (
	// How many bytes of one result a model gets at once.
	maxExcerpt = 64 << 10
	// How many of them are kept for it, with room for a note that there were more.
	maxKept = 1<<20 - 64
)

// excerpt is the beginning of a result that is too long to be told at once. The whole is in a file of the workspace,
// where it fits, for the model to read in pieces. It runs in any goroutine.
func (x *toolWork) excerpt(call tools.Call, content []messages.Block) []messages.Block {
	size := 0
	for i := range content {
		size += len(content[i].Text)
	}
	if size <= maxExcerpt {
		return content
	}
	content = x.redact(content) // before anything is cut, or half a secret would not be known as one
	m := messages.Message{Content: content}
	whole := strings.ReplaceAll(m.Text(), "\x00", "\uFFFD") // or the file would be taken for no text
	if len(whole) <= maxExcerpt {
		return content
	}
	told := maxExcerpt
	for told > 0 && !utf8.RuneStart(whole[told]) {
		told--
	}
	note := fmt.Sprintf("\n(The result has %d bytes; this is its beginning.)", len(whole))
	if call.Workspace != nil {
		key := sha256.Sum256([]byte(call.Key))
		name := fmt.Sprintf("tool-results/%x.txt", key[:8])
		if call.Workspace.Write(name, []byte(strict.Clip(whole, maxKept))) == nil {
			note = fmt.Sprintf("\n(The result has %d bytes; this is its beginning. All of it is in the file %s: read on with offset %d.)", len(whole), name, told)
		}
	}
	out := []messages.Block{{Text: whole[:told] + note}}
	for i := range content {
		if content[i].Image != nil {
			out = append(out, content[i])
		}
	}
	return out
}
