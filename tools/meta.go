package tools

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/longshore-run/longshore/messages/record"
)

// leftOut is the key of Meta that says how many others were left out.
const leftOut = "_leftOut"

// soundMeta keeps what can be recorded about a result: values that are JSON, as many as fit, in the order of their keys. Each is
// read here for the last time, so that a tool may use it again.
func soundMeta(in map[string]any) map[string]any {
	if len(in) == 0 {
		return nil
	}
	const around = 8 // bytes of a key and a value in JSON: quotes, colon, comma
	out, room := make(map[string]any, len(in)), record.MaxMeta-64
	left := 0
	for _, key := range slices.Sorted(maps.Keys(in)) {
		name, err := json.Marshal(key)
		if err != nil {
			left++
			continue
		}
		value, err := json.Marshal(in[key])
		if size := len(name) + len(value) + around; err != nil || size > room {
			left++
			continue
		}
		room -= len(name) + len(value) + around
		out[key] = json.RawMessage(value)
	}
	if left > 0 {
		out[leftOut] = left
	}
	return out
}
