// Package agents reads agent definitions from YAML files.
//
//	apiVersion: longshore.run/v1
//	kind: Agent
//	metadata:
//	  name: writer
//	  description: Writes short texts.
//	spec:
//	  instructions: You write short texts.
//	  tools: [write_file]
//	  maxSteps: 8
package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/messages"
)

// APIVersion and Kind of a definition.
const (
	APIVersion = "longshore.run/v1"
	Kind       = "Agent"
)

// maxFile bounds a definition, in bytes.
const maxFile = 1 << 20

type document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   metadata        `json:"metadata"`
	Spec       json.RawMessage `json:"spec"` // a Definition without what metadata holds
}

type metadata struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Parse reads one definition, strictly: an unknown field is an error that names it.
func Parse(data []byte) (messages.Definition, error) {
	d, err := parse(data)
	return d, located(err, data)
}

func parse(data []byte) (messages.Definition, error) {
	if len(data) > maxFile {
		return messages.Definition{}, fmt.Errorf("larger than %d bytes", maxFile)
	}
	var tree any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return messages.Definition{}, fmt.Errorf("read YAML: %w", err)
	}
	asJSON, err := json.Marshal(tree)
	if err != nil {
		return messages.Definition{}, errors.New("read YAML: a key is not a string")
	}
	var doc document
	if err := messages.Decode(asJSON, &doc); err != nil {
		return messages.Definition{}, err
	}
	switch {
	case doc.APIVersion != APIVersion:
		return messages.Definition{}, &messages.FieldError{Field: "apiVersion", Reason: "must be " + APIVersion}
	case doc.Kind != Kind:
		return messages.Definition{}, &messages.FieldError{Field: "kind", Reason: "must be " + Kind}
	}
	var d messages.Definition
	if len(doc.Spec) > 0 {
		if err := messages.Decode(doc.Spec, &d); err != nil {
			return messages.Definition{}, within(err)
		}
	}
	if d.Name != "" || d.Description != "" || d.Revision != 0 {
		return messages.Definition{}, &messages.FieldError{Field: "spec", Reason: "name and description are fields of metadata, and revisions are given"}
	}
	d.Name, d.Description = doc.Metadata.Name, doc.Metadata.Description
	d.SetDefaults()
	return d, within(d.Validate())
}

// within names a field of a definition as its file does.
func within(err error) error {
	field, ok := errors.AsType[*messages.FieldError](err)
	switch {
	case !ok:
		return err
	case field.Field == "name" || field.Field == "description":
		return &messages.FieldError{Field: "metadata." + field.Field, Reason: field.Reason}
	default:
		return &messages.FieldError{Field: strings.TrimSuffix("spec."+field.Field, "."), Reason: field.Reason}
	}
}

// Load reads every .yaml and .yml file of a folder, sorted by name. Two of the same agent are an error.
func Load(dir string) ([]messages.Definition, error) {
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, fmt.Errorf("read agents: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("read agents: %s is not a folder", dir)
	}
	var out []messages.Definition
	from := map[string]string{}
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, fmt.Errorf("read agents: %w", err)
		}
		slices.Sort(files)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read agents: %w", err)
			}
			d, err := Parse(data)
			if err != nil {
				return nil, fmt.Errorf("read agent %s: %w", file, err)
			}
			if other := from[d.Name]; other != "" {
				return nil, fmt.Errorf("read agent %s: %s defines %q too", file, other, d.Name)
			}
			from[d.Name] = file
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read agents: no .yaml file in %s", dir)
	}
	return out, nil
}
