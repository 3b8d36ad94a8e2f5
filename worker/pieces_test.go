package worker_test

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/model"
)

// piecemeal is a model that calls block, and reads the truncated rest of the result from the file that the result names.
// Its answer is the whole. It knows nothing but the messages of its requests.
type piecemeal struct {
	held chan struct{} // each request after a result waits for it or for the end of its worker; nil: none does
	seen chan struct{} // such a request has come
}

var (
	shortened = regexp.MustCompile(`\n\(The result has \d+ bytes; .* in the file (\S+): read on with offset (\d+)\.\)$`)
	continued = regexp.MustCompile(`\n\(The file has \d+ bytes; read on with offset (\d+)\.\)$`)
)

func (p *piecemeal) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if p.held != nil && r.Messages[len(r.Messages)-1].Content[0].ToolResult != nil {
			p.seen <- struct{}{}
			select {
			case <-p.held:
			case <-ctx.Done():
				yield(model.Delta{}, context.Cause(ctx))
				return
			}
		}
		reply := &model.Reply{Message: messages.Message{Role: messages.RoleAssistant}, Stop: messages.StopEnd, Provider: "test", Model: "piecemeal"}
		name, args, whole := p.next(r.Messages)
		block := messages.Block{Text: whole}
		if name != "" {
			reply.Stop = messages.StopToolCalls
			block = messages.Block{ToolCall: &messages.ToolCall{ID: fmt.Sprint("c", len(r.Messages)), Name: name, Arguments: args}}
		}
		reply.Message.Content = []messages.Block{block}
		yield(model.Delta{Reply: reply}, nil)
	}
}

// next is the next call, or without a name the answer.
func (p *piecemeal) next(said []messages.Message) (name, args, whole string) {
	name, args = "block", "{}"
	file, limit := "", 0
	for i := range said {
		for _, b := range said[i].Content {
			if b.ToolResult == nil {
				continue
			}
			text := b.ToolResult.Content[0].Text
			if b.ToolResult.IsError {
				return "", "", text
			}
			var offset int
			if m := shortened.FindStringSubmatch(text); m != nil {
				file, limit = m[1], 50_001
				offset, _ = strconv.Atoi(m[2])
			} else if m := continued.FindStringSubmatch(text); m != nil {
				offset, _ = strconv.Atoi(m[1])
			} else {
				return "", "", whole + text
			}
			whole += text[:strings.LastIndex(text, "\n(The ")]
			name, args = "read_file", fmt.Sprintf(`{"filePath":%q,"offset":%d,"limit":%d}`, file, offset, limit)
		}
	}
	return name, args, whole
}

// A model gets every byte of a result that was too long to be told at once, also when another worker on the machine continues
// with the run. Where the file is not, it is told so.
func TestShortenedResultsAreReadInPieces(t *testing.T) {
	def := blockAgent
	def.Tools = []string{"block", "read_file"}
	def.SetDefaults()
	output := strings.Repeat("é", 32_767) + "xé" + strings.Repeat("0123456789äöü\x00\n", 12_000) // é lies over the end of what is told at first
	want := strings.ReplaceAll(output, "\x00", "\uFFFD")
	for name, c := range map[string]struct{ replaced, elsewhere bool }{
		"one worker": {}, "another worker continues": {replaced: true}, "another machine continues": {replaced: true, elsewhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, 30*time.Second, def)
			m := &piecemeal{}
			if c.replaced {
				m.held, m.seen = make(chan struct{}), make(chan struct{}, 1)
			}
			_, stop := h.worker("first", m, worker.Config{DrainTimeout: time.Millisecond}, long{output})
			run := h.submit(messages.Task{Agent: "blocker", Input: messages.TextInput("talk")})
			if c.replaced {
				<-m.seen
				stop()
				if c.elsewhere {
					var err error
					if h.dirs, err = sandbox.NewWorkspaces(t.TempDir(), sandbox.Limits{}); err != nil {
						t.Fatal(err)
					}
				}
				h.worker("second", &piecemeal{}, worker.Config{}, long{output})
			}
			r := h.result(run)
			got, _ := r.Result.(string)
			switch {
			case c.elsewhere:
				if !strings.Contains(got, "tool-results/") || !strings.Contains(got, "does not exist") {
					t.Errorf("the model is told %.300q", got)
				}
			case got != want:
				t.Errorf("of %d bytes the model read %d, which begin to differ at %d", len(want), len(got), differ(got, want))
			}
			if r.Error != nil {
				t.Error(r.Error)
			}
		})
	}
}

// differ is where two texts begin to.
func differ(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
