package evaluation

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// step goes from a JSON value to one in it.
type step struct {
	name  string
	index int // when name is not set
	named bool
}

const maxPathSteps = 32

// element is one step of a path: .name, ["any name"] or [0].
var element = regexp.MustCompile(`^(?:\.([A-Za-z_][A-Za-z0-9_-]*)|\["([^"\\]*)"\]|\['([^'\\]*)'\]|\[(\d{1,6})\])`)

// parsePath reads a path of the part of JSONPath that names one place: $, names and indices.
func parsePath(path string) ([]step, error) {
	bad := &messages.FieldError{Field: "path", Reason: `must be a place such as $.items[0]["a name"]`}
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, bad
	}
	var steps []step
	for rest != "" {
		m := element.FindStringSubmatch(rest)
		if m == nil || len(steps) == maxPathSteps {
			return nil, bad
		}
		rest = rest[len(m[0]):]
		if m[4] == "" {
			steps = append(steps, step{name: m[1] + m[2] + m[3], named: true})
			continue
		}
		n, err := strconv.Atoi(m[4])
		if err != nil {
			return nil, bad
		}
		steps = append(steps, step{index: n})
	}
	return steps, nil
}

// at is the value at a place; false: there is none.
func at(v any, steps []step) (any, bool) {
	for _, s := range steps {
		switch in := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = in[s.name]; !s.named || !ok {
				return nil, false
			}
		case []any:
			if s.named || s.index >= len(in) {
				return nil, false
			}
			v = in[s.index]
		default:
			return nil, false
		}
	}
	return v, true
}
