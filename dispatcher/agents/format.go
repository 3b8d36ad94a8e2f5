package agents

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/messages"
)

// Format writes a definition as the YAML that Parse reads, without its revision. The same definition is always written
// the same.
func Format(d messages.Definition) ([]byte, error) {
	name, description := d.Name, d.Description
	d.Name, d.Description, d.Revision = "", "", 0
	encoded, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", name, err)
	}
	dec := json.NewDecoder(bytes.NewReader(encoded))
	dec.UseNumber()
	var spec map[string]any
	if err := dec.Decode(&spec); err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", name, err)
	}
	delete(spec, "name")
	numbers(spec)
	meta := struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description,omitempty"`
	}{name, description}
	out, err := yaml.Dump(struct {
		APIVersion string         `yaml:"apiVersion"`
		Kind       string         `yaml:"kind"`
		Metadata   any            `yaml:"metadata"`
		Spec       map[string]any `yaml:"spec"`
	}{APIVersion, Kind, meta, spec}, yaml.WithIndent(2))
	if err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", name, err)
	}
	return out, nil
}

// numbers makes the numbers of JSON those of YAML, whole ones without an exponent.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // it is out of range at worst
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}
