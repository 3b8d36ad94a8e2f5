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

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
)

// APIVersion and Kind of a definition.
const (
	APIVersion = "longshore.run/v1"
	Kind       = "Agent"
)

// maxFile bounds a definition, in bytes.
const maxFile = 1 << 20

type file struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   metadata        `json:"metadata"`
	Spec       json.RawMessage `json:"spec"` // a Definition without what metadata holds
}

type metadata struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Parse reads the definitions of a YAML file, one in each document, strictly: an unknown field is an error that names
// it. There is at least one. Two of the same agent are an error.
func Parse(data []byte) ([]messages.Definition, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	all, err := document.All(data, maxFile)
	if err != nil {
		return nil, err
	}
	defs := make([]messages.Definition, 0, len(all))
	lines := map[string]int{}
	for _, doc := range all {
		d, err := parse(doc.JSON)
		if err == nil && lines[d.Name] != 0 {
			err = &messages.FieldError{Field: "metadata.name", Reason: fmt.Sprintf("the document on line %d defines %q too", lines[d.Name], d.Name)}
		}
		if err != nil {
			err = doc.Locate(err)
			if len(all) > 1 {
				err = fmt.Errorf("document on line %d: %w", doc.Line, err)
			}
			return nil, err
		}
		lines[d.Name] = doc.Line
		defs = append(defs, d)
	}
	return defs, nil
}

func parse(asJSON []byte) (messages.Definition, error) {
	var doc file
	if err := strict.Decode(asJSON, &doc); err != nil {
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
		if err := strict.Decode(doc.Spec, &d); err != nil {
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

// flat reads a definition without the frame of a file, as the HTTP API takes it.
func flat(asJSON []byte) (d messages.Definition, err error) {
	if err := strict.Decode(asJSON, &d); err != nil {
		return d, err
	}
	d.Revision = 0
	d.SetDefaults()
	return d, d.Validate()
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
			data, err := document.Read(file, maxFile)
			if err != nil {
				return nil, fmt.Errorf("read agents: %w", err)
			}
			defs, err := Parse(data)
			if err != nil {
				return nil, fmt.Errorf("read agent %s: %w", file, err)
			}
			for _, d := range defs {
				if other := from[d.Name]; other != "" {
					return nil, fmt.Errorf("read agent %s: %s defines %q too", file, other, d.Name)
				}
				from[d.Name] = file
			}
			out = append(out, defs...)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read agents: no .yaml file in %s", dir)
	}
	return out, nil
}
