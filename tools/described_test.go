package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// However many tools there are, and however long their descriptions are, what a worker says of them fits a message.
func TestDescribed(t *testing.T) {
	t.Parallel()
	type in struct {
		Text string `json:"text"`
	}
	var all []tools.Tool
	for i := range messages.MaxWorkerTools + 1 {
		spec := messages.ToolSpec{Name: fmt.Sprintf("tool_%04d", i), Description: strings.Repeat("long ", 1000), Effect: messages.EffectRead}
		tool, err := tools.Func(spec, func(context.Context, tools.Call, in) (tools.Result, error) { return tools.Result{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tool)
	}
	set, err := tools.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	told := set.Described()
	data, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != messages.MaxWorkerTools || len(data) > 900<<10 {
		t.Errorf("%d tools in %d bytes", len(told), len(data))
	}
	if first, last := told[0], told[len(told)-1]; len(first.InputSchema) == 0 || len(first.Description) > 2200 || len(last.InputSchema) != 0 || last.Description != "" || last.Effect != messages.EffectRead {
		t.Errorf("first %.100q %d, last %+v", first.Description, len(first.InputSchema), last)
	}
}
