package tools_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
)

// What a tool says about its answer is JSON of bounded size, and says what it left out.
func TestMetaIsBoundedJSON(t *testing.T) {
	in := map[string]any{
		"a": 1, "b": []string{"x"}, "long": strings.Repeat("v", 5000), "many": strings.Repeat("v", 3000), "more": strings.Repeat("w", 3000),
		"not": math.Inf(1), "odd": func() {},
	}
	tool, err := tools.Func(messages.ToolSpec{Name: "t", Description: "T.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) {
			r := tools.Text("ok")
			r.Meta = in
			return r, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(tool)
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Call(t.Context(), "t", tools.Call{Arguments: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r.Meta)
	if err != nil || len(b) > record.MaxMeta || r.Meta["_leftOut"] != 4 {
		t.Errorf("%d bytes, %v left out, %v", len(b), r.Meta["_leftOut"], err)
	}
	for _, key := range []string{"a", "b", "many"} {
		if r.Meta[key] == nil {
			t.Errorf("%s is left out: %.100s", key, b)
		}
	}
}
