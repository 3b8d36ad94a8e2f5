package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

// The schema of a task takes what the decoder takes, and nothing else: a table of bodies, made by changing each field of whole
// ones to null, to other types, to what is empty, out of range, or in no list, goes through both. What depends on two fields
// is not in the schema.
func TestTaskSchemaAgreesWithTheDecoder(t *testing.T) {
	t.Parallel()
	schema := resolved(t)["task"]
	whole := []string{
		`{"id":"a","tenant":"acme","agent":"r","input":"hi","context":{"a":[1]},"session":"s","priority":"high","labels":{"team":"x"},
		 "limits":{"maxSteps":5,"modelCalls":1,"toolCalls":1,"tokens":9,"cost":0.5,"wallTime":"90s"},"deadline":"2030-01-02T15:04:05Z",
		 "notBefore":"2029-01-02T15:04:05.5+02:00","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		 "outputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"workspace":"w","seed":-3,
		 "webhook":{"url":"https://h.example.com/x","events":["failed"]},"concurrency":{"key":"k","limit":2},"by":"ann"}`,
		`{"input":[{"text":"a"},{"text":""}],"plan":{"estimatedDuration":1.5,"requiredApprovals":["a"],"steps":[
		 {"id":"a","description":"A.","tool":"t","args":{"x":1},"requiredApprovals":["ops"],"estimatedDuration":2,"critical":false},
		 {"id":"b","description":"B.","tool":"t","dependsOn":["a"]}]}}`,
		`{"description":"hi"}`, `{"description":[{"text":"a"}]}`,
	}
	bodies := map[string]bool{
		`{}`: true, `[]`: true, `null`: true, `"hi"`: true, `7`: true, `{"input":"a","description":"b"}`: true, `{"input":[{"text":""}]}`: true,
		`{"input":[{"image":{"url":"https://a.example.com"}}]}`: true, `{"input":[{"text":"a","image":{}}]}`: true,
		`{"input":"a","files":[]}`: true, `{"input":"a","parent":"r"}`: true, `{"input":"a","context":[1]}`: true, `{"input":"a","priority":"wake"}`: true,
		`{"input":"a","id":"_"}`: true, `{"input":"a","tenant":"_"}`: true, `{"input":"a","agent":"_"}`: true, `{"input":"a","limits":{}}`: true,
		`{"input":"a","outputSchema":{"type":7}}`: true, `{"input":"a","outputSchema":{"type":["object"]}}`: true,
		`{"input":"a","labels":{"":"x"}}`: true, `{"input":"a","labels":{"k":""}}`: true,
		`{"input":"a","webhook":{"url":"https://h.example.com","events":["failed","failed"]}}`: true,
		`{"input":"a","webhook":{"url":"https://h.example.com","events":["expired"]}}`:         true,
	}
	for _, body := range whole {
		bodies[body] = true
		for _, changed := range mutations(t, body) {
			bodies[changed] = true
		}
	}
	taken, differ := 0, 0
	for _, body := range slices.Sorted(maps.Keys(bodies)) {
		_, refused := messages.DecodeTask([]byte(body))
		if refused != nil && strings.Contains(refused.Error(), "no step has the id") {
			continue // it depends on two fields
		}
		wrong := schema.Validate(plain(t, []byte(body)))
		if (refused == nil) != (wrong == nil) {
			differ++
			t.Errorf("%s\n  decoder: %v\n  schema:  %v", strings.Join(strings.Fields(body), " "), refused, wrong)
		}
		if refused == nil {
			taken++
		}
	}
	if len(bodies) < 500 || taken < 50 {
		t.Errorf("%d bodies, %d of them taken: is it a table?", len(bodies), taken)
	}
}

// mutations are copies of a body with one value changed, for every value in it.
func mutations(t *testing.T, body string) (out []string) {
	t.Helper()
	values := []any{
		nil, true, 0.0, -1.0, 1.5, 1e6, 1e15, "", " ", "zz", "a b", strings.Repeat("x", 65), strings.Repeat("x", 5000), "-1s", "0s", "1h30m", "2030-01-02",
		"ftp://h.example.com", "https://",
		[]any{},
		[]any{nil},
		[]any{1.0},
		[]any{"a"},
		[]any{""},
		map[string]any{},
		map[string]any{"zz": nil},
		map[string]any{"zz": "a"},
	}
	var walk func(v any, set func(any))
	tree := plain(t, []byte(body))
	save := func() {
		b, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	walk = func(v any, set func(any)) { // what is inside of a schema is not of the task
		for _, other := range values {
			set(other)
			save()
		}
		set(v)
		switch v := v.(type) {
		case map[string]any:
			if v["type"] == "object" {
				return
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key], func(to any) { v[key] = to })
				was := v[key]
				delete(v, key)
				save()
				v[key] = was
			}
			v["zz"] = "unknown"
			save()
			delete(v, "zz")
		case []any:
			for i := range v {
				walk(v[i], func(to any) { v[i] = to })
			}
		}
	}
	walk(tree, func(to any) { tree = to })
	return out
}

// A schema is checked where a task is submitted as the worker would check it later.
func TestOutputSchemasAreRefusedAtSubmit(t *testing.T) {
	t.Parallel()
	for schema, field := range map[string]string{
		`{"type":7}`:       "outputSchema.type",
		`{"type":"array"}`: "outputSchema.type",
		`{}`:               "outputSchema.type",
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`: "outputSchema.properties.a.$ref",
		`{"type":"object","properties":[]}`:                                          "outputSchema.properties",
		`{"type":"object","properties":{"a":{"pattern":"("}}}`:                       "outputSchema.properties.a.pattern",
		`{"type":"object","required":"a"}`:                                           "outputSchema.required",
		`{"type":"object","anyOf":[7]}`:                                              "outputSchema.anyOf[0]",
		`{"type":"object","minProperties":"1"}`:                                      "outputSchema.minProperties",
	} {
		_, err := messages.DecodeTask(fmt.Appendf(nil, `{"input":"a","outputSchema":%s}`, schema))
		if err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v, want %s", schema, err, field)
		}
	}
}
