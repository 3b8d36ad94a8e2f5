// Package schedules reads schedules from YAML files.
//
//	apiVersion: longshore.run/v1
//	kind: Schedule
//	metadata:
//	  name: morning-report
//	spec:
//	  cron: "0 8 * * mon-fri"
//	  timeZone: Europe/Berlin
//	  task:
//	    agent: reporter
//	    input: Write the morning report.
package schedules

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
)

// APIVersion and Kind of a schedule.
const (
	APIVersion = "longshore.run/v1"
	Kind       = "Schedule"
)

// maxFile bounds a schedule, in bytes.
const maxFile = 1 << 20

type file struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   metadata        `json:"metadata"`
	Spec       json.RawMessage `json:"spec"` // a Schedule without what metadata holds, and without its tenant
}

type metadata struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Parse reads one schedule, strictly: an unknown field is an error that names it, and a second document one that names
// its line. Its tenant is left to the caller.
func Parse(data []byte) (control.Schedule, error) {
	if len(data) > maxFile {
		return control.Schedule{}, fmt.Errorf("larger than %d bytes", maxFile)
	}
	yaml, err := document.Only(data, maxFile)
	if err != nil {
		return control.Schedule{}, err
	}
	s, err := parse(yaml.JSON)
	return s, yaml.Locate(err)
}

func parse(asJSON []byte) (control.Schedule, error) {
	var doc file
	if err := strict.Decode(asJSON, &doc); err != nil {
		return control.Schedule{}, err
	}
	switch {
	case doc.APIVersion != APIVersion:
		return control.Schedule{}, &messages.FieldError{Field: "apiVersion", Reason: "must be " + APIVersion}
	case doc.Kind != Kind:
		return control.Schedule{}, &messages.FieldError{Field: "kind", Reason: "must be " + Kind}
	case len(doc.Spec) == 0:
		return control.Schedule{}, &messages.FieldError{Field: "spec", Reason: "is missing"}
	}
	var s control.Schedule
	if err := strict.Decode(doc.Spec, &s); err != nil {
		return control.Schedule{}, within(err)
	}
	if s.Name != "" || s.Description != "" || s.Tenant != "" || s.Revision != 0 {
		return control.Schedule{}, &messages.FieldError{Field: "spec", Reason: "name and description are fields of metadata, tenant and revision are given"}
	}
	s.Name, s.Description = doc.Metadata.Name, doc.Metadata.Description
	checked := s
	checked.SetDefaults()
	return s, within(checked.Validate())
}

// within names a field of a schedule as its file does.
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
