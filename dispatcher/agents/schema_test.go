package agents_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/messages"
)

var update = flag.Bool("update", false, "write the golden files anew")

const schemaFile = "../../docs/schemas/agent.schema.json"

func TestSchema(t *testing.T) {
	got, err := agents.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the published schema differs; -update rewrites it:\n%s", diff)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(got, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		var doc any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(asJSON, &plain); err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(plain)
	}
	files, err := filepath.Glob("../../deploy/examples/agents/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for name, change := range map[string][2]string{
		"a typo": {"instructions", "instructoins"}, "a name in spec": {"maxSteps: 8", "name: other"}, "another kind": {"kind: Agent", "kind: Job"},
		"a wrong type": {"maxSteps: 8", "maxSteps: many"}, "no name": {"name: writer, ", ""}, "a hostile name": {"name: writer", "name: '>'"},
		"a prompt without an id": {"maxSteps: 8", "prompt: {version: 1}"}, "more": {"kind: Agent", "kind: Agent\nstatus: {}"},
	} {
		if err := check(strings.Replace(writer, change[0], change[1], 1)); err == nil {
			t.Errorf("%s is right for the schema", name)
		}
	}
}

func TestFormat(t *testing.T) {
	d := messages.Definition{
		Name: "full", Revision: 9, Description: "Does\nthings: {}", Instructions: "One.\n\n  Two.\n", Tools: []string{"a"}, Temperature: new(0.5),
		Prompt: &messages.PromptRef{ID: "p", Version: 12345678901, Vars: json.RawMessage(`{"a":[1,"x"],"b":null}`)},
	}
	d.SetDefaults()
	text, err := agents.Format(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseOne(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	d.Revision = 0
	if diff := cmp.Diff(d, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(text), "instructions: |") {
		t.Errorf("text is hard to read:\n%s", text)
	}
}

// A person sees what a definition says: texts of several lines are blocks, whatever they are written in, and what cannot be seen is escaped.
func TestFormatIsReadable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Greet 🎉.\nThen 日本語, e\u0301, \ue000.\n": "instructions: |\n    Greet 🎉.\n    Then 日本語, e\u0301, \ue000.\n",
		"one\n\ttwo 🚢 🎉":                         "instructions: |-\n    one\n    \ttwo 🚢 🎉\n",
		"pay\u202e 🎉":                            `instructions: "pay\u202e 🎉"`,
		"tags\U000e0041":                         `instructions: "tags\U000E0041"`,
		"a\u200bb\nc":                            `instructions: "a\u200bb\nc"`,
		"a\r\nb \n\u2028c":                       `instructions: "a\r\nb \n\L`,
		"~\x1b[31m":                              `instructions: "~\e[31m"`,
	} {
		d := messages.Definition{Name: "full", Instructions: text}
		d.SetDefaults()
		file, err := agents.Format(d)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(file), want) {
			t.Errorf("%q is written as\n%s", text, file)
		}
		got, err := parseOne(file)
		if err != nil {
			t.Errorf("%q: %v in\n%s", text, err, file)
		}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Error(diff)
		}
	}
}

// Formatting and parsing again leads back to any definition, also where a key is hard to write.
func FuzzFormat(f *testing.F) {
	for _, seed := range []string{"", " ", "yes", "~", "a: b\n- c #d\n", "\u202e\U0001f389\ue000\n\n", "\r\n", "'\"\\", "\ufeff", strings.Repeat("word 🎉 ", 40)} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, text, key string) {
		vars, err := json.Marshal(map[string]string{key: text})
		if err != nil {
			t.Fatal(err)
		}
		d := messages.Definition{Name: "full", Description: text, Instructions: text + key, Prompt: &messages.PromptRef{ID: "p", Vars: vars}}
		d.SetDefaults()
		if d.Validate() != nil {
			return
		}
		file, err := agents.Format(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseOne(file)
		if err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Errorf("%s of\n%s", diff, file)
		}
	})
}
