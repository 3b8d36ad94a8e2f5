package agents

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/messages"
)

// unknownField is the reason of a field that does not exist.
const unknownField = "unknown field"

// located adds to an error about a field its line in the file and, of a field that does not exist, the nearest one that
// does.
func located(err error, root *yaml.Node) error {
	field, ok := errors.AsType[*messages.FieldError](err)
	if !ok {
		return err
	}
	reason := field.Reason
	path := steps(field.Field)
	if reason == unknownField && len(path) > 0 {
		if near := nearest(path[len(path)-1], names(reflect.TypeFor[file](), path[:len(path)-1])); near != "" {
			reason += ": did you mean " + near + "?"
		}
	}
	if line := lineOf(root, path); line > 0 {
		reason += fmt.Sprintf(" (line %d)", line)
	}
	return &messages.FieldError{Field: field.Field, Reason: reason}
}

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

// names are the fields of what stands at a path below a type; none when that is not an object of ours.
func names(t reflect.Type, path []string) []string {
	for _, step := range path {
		fields := fieldsOf(deref(t))
		if step == "spec" && deref(t) == reflect.TypeFor[file]() {
			t = reflect.TypeFor[messages.Definition]()
			continue
		}
		if next, ok := fields[step]; ok {
			t = next
			continue
		}
		if t = deref(t); t.Kind() != reflect.Slice && t.Kind() != reflect.Map {
			return nil
		}
		t = t.Elem()
	}
	found := slices.Sorted(maps.Keys(fieldsOf(deref(t))))
	if deref(t) == reflect.TypeFor[messages.Definition]() { // metadata has these
		found = slices.DeleteFunc(found, func(n string) bool { return n == "name" || n == "description" || n == "revision" })
	}
	return found
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// fieldsOf are the fields of a struct by their names in JSON, those of embedded ones too.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return found
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(found, fieldsOf(deref(f.Type)))
		case f.IsExported() && name != "" && name != "-":
			found[name] = f.Type
		}
	}
	return found
}

// nearest is the name that differs least from another, if that looks like a slip.
func nearest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is how many characters must be added, removed or replaced to make one text of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
