package openai

import (
	"encoding/json"
	"fmt"
	"maps"
)

// edit is the part of a request that the client has no field for.
type edit struct {
	temperature *float64
	whole       bool            // the reply comes in one piece
	messages    map[int]echoed  // by place in the request
	tools       map[string]bool // that are offered, by name
}

// patch edits an encoded request. Beyond the edit it adds the content of a message when it is empty: strict servers
// want it all the same, some of them not as null.
func patch(body []byte, e *edit) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(fields["messages"], &list); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	for i, m := range list {
		if _, ok := m["content"]; !ok {
			m["content"] = json.RawMessage(`""`)
		}
		maps.Copy(m, e.messages[i].fields)
		if err := addExtras(m, e.messages[i].calls); err != nil {
			return nil, err
		}
	}
	var err error
	if fields["messages"], err = json.Marshal(list); err != nil {
		return nil, fmt.Errorf("write messages: %w", err)
	}
	if e.temperature != nil {
		fields["temperature"] = encode(*e.temperature)
	}
	if e.whole {
		fields["stream"] = json.RawMessage("false")
	}
	return json.Marshal(fields)
}

func addExtras(m map[string]json.RawMessage, extras map[int]json.RawMessage) error {
	if len(extras) == 0 || m["tool_calls"] == nil {
		return nil
	}
	var calls []map[string]json.RawMessage
	if err := json.Unmarshal(m["tool_calls"], &calls); err != nil {
		return fmt.Errorf("read own request: %w", err)
	}
	for n, extra := range extras {
		if n >= 0 && n < len(calls) {
			calls[n][inCallRest] = extra
		}
	}
	m["tool_calls"] = encode(calls)
	return nil
}
