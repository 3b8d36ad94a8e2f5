package workers

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func (ws *Workers) tools(ctx context.Context, _ struct{}) (any, error) {
	all, err := ws.cfg.Fleet.Detailed(ctx)
	if err != nil {
		return nil, err
	}
	return control.ToolList{Tools: offered(all)}, nil
}

// offered are the tools of all workers, by name.
func offered(all []messages.WorkerStatus) []control.OfferedTool {
	found := map[string]*control.OfferedTool{}
	for _, w := range all {
		specs := map[string]messages.ToolSpec{}
		for _, s := range w.Specs {
			specs[s.Name] = s
		}
		for _, name := range w.Tools {
			spec, told := specs[name]
			if !told {
				spec = messages.ToolSpec{Name: name}
			}
			t := found[name]
			switch {
			case t == nil:
				t = &control.OfferedTool{ToolSpec: spec}
				found[name] = t
			case !told: // by a worker of an earlier version
			case t.Effect == "":
				t.ToolSpec = spec
			case !alike(t.ToolSpec, spec):
				t.Differs = true
			}
			t.Workers++
		}
	}
	out := make([]control.OfferedTool, 0, len(found))
	for _, t := range slices.SortedFunc(maps.Values(found), func(a, b *control.OfferedTool) int { return strings.Compare(a.Name, b.Name) }) {
		out = append(out, *t)
	}
	return out
}

func alike(a, b messages.ToolSpec) bool {
	return a.Description == b.Description && a.Effect == b.Effect && a.Destructive == b.Destructive && a.SafeByDefault == b.SafeByDefault &&
		bytes.Equal(a.InputSchema, b.InputSchema)
}
