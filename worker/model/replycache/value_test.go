package replycache

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// Whatever is read is a whole reply that costs nothing, and can be stored again.
func FuzzDecode(f *testing.F) {
	good, err := encode("h", &model.Reply{
		Message: messages.Message{Role: messages.RoleAssistant, Content: []messages.Block{
			{Text: "Let me look."},
			{Reasoning: &messages.Reasoning{Family: "openai", Text: "hm"}},
			{ToolCall: &messages.ToolCall{ID: "c1", Name: "look", Arguments: "{}"}},
		}},
		Stop: messages.StopToolCalls, Provider: "openai", Model: "m",
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(bytes.Replace(good, []byte("tool_calls"), []byte("end"), 1))
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"version":1,"hash":"h","message":null,"stop":"end"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode("h", data)
		if err != nil {
			return
		}
		if !r.Cached || r.Usage != (messages.Usage{}) || !isWhole(&r.Message, r.Stop) {
			t.Errorf("got %+v, want a whole reply from the cache", r)
		}
		again, err := encode("h", r)
		if err != nil {
			if len(data) < MaxValue/8 { // escapes may make it larger
				t.Fatal(err)
			}
			return
		}
		back, err := decode("h", again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Error(diff)
		}
	})
}
