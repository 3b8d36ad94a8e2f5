package scripted_test

import (
	"encoding/json"
	"testing"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/modeltest"
)

func TestConformance(t *testing.T) {
	modeltest.Run(t, func(t *testing.T, a modeltest.Answer) model.Provider {
		t.Helper()
		turn := map[string]any{"text": a.Text, "chunk": 7}
		if a.Hang {
			turn["pause"] = "1h"
		}
		if a.Fail != "" {
			turn["error"] = map[string]any{"class": a.Fail, "message": "as written"}
		}
		var calls []any
		for _, c := range a.Calls {
			calls = append(calls, map[string]any{"name": c.Name, "arguments": json.RawMessage(c.Arguments)})
		}
		if calls != nil {
			turn["calls"] = calls
		}
		script, err := json.Marshal(map[string]any{ // JSON is YAML
			"scenes": []any{map[string]any{"turns": []any{turn}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, string(script))
	})
}
