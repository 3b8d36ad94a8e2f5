package replycache

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/model"
)

// MaxValue is the size limit of what is stored for one reply, in bytes.
const MaxValue = 256 << 10

// version of the values. Another one is a miss.
const version = 1

// value is a reply as it is stored. It holds no usage: nothing is paid for it again.
type value struct {
	Version  int                 `json:"version"`
	Hash     string              `json:"hash"` // of the question
	Message  messages.Message    `json:"message"`
	Stop     messages.StopReason `json:"stop"`
	Provider string              `json:"provider,omitempty"`
	Model    string              `json:"model,omitempty"`
}

// errUnfit is a reply that is not to be used again.
var errUnfit = errors.New("not a whole reply")

// encode returns errUnfit for a reply that is not whole, or would not be read back as it is.
func encode(hash string, r *model.Reply) ([]byte, error) {
	v := value{version, hash, r.Message, r.Stop, r.Provider, r.Model}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode reply: %w", err)
	}
	back, err := decode(hash, data)
	if err != nil || !reflect.DeepEqual(back.Message, r.Message) { // such as text that is not UTF-8
		return nil, errUnfit
	}
	return data, nil
}

// decode reads a value strictly. Any error is a miss.
func decode(hash string, data []byte) (*model.Reply, error) {
	if len(data) > MaxValue {
		return nil, fmt.Errorf("larger than %d bytes", MaxValue)
	}
	var v value
	if err := strict.Decode(data, &v); err != nil {
		return nil, fmt.Errorf("read reply: %w", err)
	}
	if v.Version != version || v.Hash != hash {
		return nil, errors.New("a reply to another question")
	}
	if !isWhole(&v.Message, v.Stop) {
		return nil, errUnfit
	}
	return &model.Reply{Message: v.Message, Stop: v.Stop, Provider: v.Provider, Model: v.Model, Cached: true}, nil
}

// isWhole reports whether a model ended a message by itself: it was not cut, filtered, refused, or empty.
func isWhole(m *messages.Message, stop messages.StopReason) bool {
	if m.Role != messages.RoleAssistant || len(m.Content) == 0 {
		return false
	}
	for _, b := range m.Content {
		fields := 0
		for _, is := range []bool{b.Text != "", b.Reasoning != nil, b.ToolCall != nil} {
			if is {
				fields++
			}
		}
		if fields != 1 || b.Image != nil || b.ToolResult != nil || b.ToolCall != nil && b.ToolCall.Name == "" {
			return false
		}
	}
	switch stop {
	case messages.StopEnd:
		return len(m.Calls()) == 0 && m.Text() != ""
	case messages.StopToolCalls:
		return len(m.Calls()) > 0
	case messages.StopLength, messages.StopContentFilter, messages.StopRefusal, messages.StopError:
		return false
	default:
		return false
	}
}
