package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// repeated finds loops in the results of a step, which are those of the open calls: the same call with the same result
// as in the step before, and before that. The model is told in the transcript; the record of the result stays as it
// is. A model that continues regardless has as good as used up its steps: the run fails with max_steps.
func (s *State) repeated(results []messages.Block) {
	limit := s.Agent.RepeatsAllowed()
	if limit == 0 {
		return
	}
	now := make(map[string]int, len(results))
	for i := range results {
		call, res := s.Open[i].Call, results[i].ToolResult
		key := repeatKey(call, res)
		n := s.Repeats[key] + 1
		now[key] = n
		switch {
		case n >= 2*limit && !s.last(): // at the limit of steps that is what ends it
			s.fail(messages.CodeMaxSteps, fmt.Sprintf(
				"the model goes in circles: %d times in a row the same call of %s with the same result (repeatLimit is %d)",
				n, strict.Clip(call.Name, 64), limit))
		case n >= limit:
			told := *res
			told.Content = append(slices.Clone(res.Content), messages.Block{Text: fmt.Sprintf(
				"\n\n(Note: this call was made %d times in a row, each time with this result. Making it again changes nothing: "+
					"do something else, or answer with what you have.)", n)})
			results[i].ToolResult = &told
		}
	}
	s.Repeats = now
}

// repeatKey is the same for the same call with the same result, however its arguments are written.
func repeatKey(c messages.ToolCall, r *messages.ToolResult) string {
	h := sha256.New()
	add := func(b []byte) {
		h.Write(binary.AppendUvarint(nil, uint64(len(b))))
		h.Write(b)
	}
	add([]byte(c.Name))
	add(canonical(c.Arguments))
	if r.IsError {
		add([]byte("error"))
	}
	for _, b := range r.Content {
		add([]byte(b.Text))
		if b.Image != nil {
			add(b.Image.Data)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// canonical is JSON with its keys sorted and without spacing; what is not JSON stays as it is.
func canonical(arguments string) []byte {
	dec := json.NewDecoder(bytes.NewReader([]byte(arguments)))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return []byte(arguments)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(arguments)
	}
	return b
}
