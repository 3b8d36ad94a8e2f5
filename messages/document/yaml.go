package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ErrEmpty is returned by All and Only for a file without a document.
var ErrEmpty = errors.New("the file is empty")

// YAML is one document of a YAML file.
type YAML struct {
	JSON []byte    // the same as JSON
	Node yaml.Node // what it was read from; its lines are those of the whole file
	Line int       // where it begins, from 1
}

// All returns the documents of a YAML file in their order; empty ones between two separators do not count. There is at
// least one. Each may have limit bytes as JSON, with what its aliases repeat.
func All(data []byte, limit int) ([]YAML, error) {
	var all []YAML
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var d YAML
		switch err := dec.Decode(&d.Node); {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, ErrEmpty
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, notYAML(err)
		}
		root := &d.Node
		if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
			root = root.Content[0]
		}
		if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
			continue
		}
		d.Line = root.Line
		if err := d.encode(limit); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
}

// Only returns the document of a YAML file. A second one is an error that names its line.
func Only(data []byte, limit int) (*YAML, error) {
	all, err := All(data, limit)
	switch {
	case err != nil:
		return nil, err
	case len(all) > 1:
		return nil, fmt.Errorf("a second YAML document begins on line %d: give one document in each file", all[1].Line)
	default:
		return &all[0], nil
	}
}

func (d *YAML) encode(limit int) error {
	undated(&d.Node)
	var tree any
	if err := d.Node.Decode(&tree); err != nil {
		return notYAML(err)
	}
	out, err := json.Marshal(tree)
	switch {
	case err != nil:
		return &SyntaxError{Reason: "a key is not a string, or a number is not finite"}
	case len(out) > limit:
		return fmt.Errorf("larger than %d bytes once its aliases are resolved", limit)
	}
	d.JSON = out
	return nil
}

// undated has days and times stay the text that they are: JSON has no others.
func undated(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content {
		undated(c)
	}
}

// SyntaxError says why a text is not YAML.
type SyntaxError struct {
	Line   int // from 1; 0: unknown
	Reason string
}

func (e *SyntaxError) Error() string { return "read YAML: " + e.Reason }

// lineNamed is where the library says that a text is wrong.
var lineNamed = regexp.MustCompile(`\bline (\d+)`)

// notYAML is the error of the library in one line.
func notYAML(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	e := &SyntaxError{Reason: strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "construct errors: ")}
	if m := lineNamed.FindStringSubmatch(text); m != nil {
		e.Line, _ = strconv.Atoi(m[1]) // too large a number stays 0
	}
	return e
}
