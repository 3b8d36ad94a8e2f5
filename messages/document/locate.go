package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/messages/strict"
)

// Locate adds to a *strict.FieldError its line in the file; other errors, and nil, stay as they are. The field must be named as the
// document names it.
func (d *YAML) Locate(err error) error {
	field, ok := errors.AsType[*strict.FieldError](err)
	if !ok {
		return err
	}
	reason := field.Reason
	if line := d.LineOf(field.Field); line > 0 {
		reason += fmt.Sprintf(" (line %d)", line)
	}
	return &strict.FieldError{Field: field.Field, Reason: reason}
}

// LineOf is the line of a field in the file, or of the deepest one above it that the file has; 0: there is none.
func (d *YAML) LineOf(field string) int { return lineOf(&d.Node, steps(field)) }

// steps are the names and indices of a path such as spec.models[1].name.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// lineOf is the line of the deepest node on a path; 0: there is none.
func lineOf(node *yaml.Node, path []string) int {
	if node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
	}
	line := 0
	for _, step := range path {
		next := (*yaml.Node)(nil)
		switch node.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == step {
					line, next = node.Content[i].Line, node.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
				next = node.Content[i]
				line = next.Line
			}
		default:
		}
		if next == nil {
			return line
		}
		node = next
	}
	return line
}
