package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
		return errors.New("read YAML: a key is not a string, or a number is not finite")
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

// notYAML is the error of the library in one line.
func notYAML(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return fmt.Errorf("read YAML: %s", strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "construct errors: "))
}
