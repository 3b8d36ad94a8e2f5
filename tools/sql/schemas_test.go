package sql

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// The schemas that models are told have the fields of the structs that calls are read into, with the same types.
func TestSchemasAreThoseOfTheStructs(t *testing.T) {
	for file, of := range map[string]reflect.Type{
		"sql_schema.json": reflect.TypeFor[schemaArgs](), "sql_query.json": reflect.TypeFor[statementArgs](), "sql_execute.json": reflect.TypeFor[statementArgs](),
	} {
		data, err := described.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var written jsonschema.Schema
		if err := json.Unmarshal(data, &written); err != nil {
			t.Fatal(err)
		}
		inferred, err := jsonschema.ForType(of, nil)
		if err != nil {
			t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(inferred.Properties))
		if got := slices.Sorted(maps.Keys(written.Properties)); !slices.Equal(got, names) {
			t.Errorf("%s has the fields %v, the struct %v", file, got, names)
			continue
		}
		for _, name := range names {
			got, want := kinds(written.Properties[name]), kinds(inferred.Properties[name])
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s is %v, in the struct %v", file, name, got, want)
			}
			if written.Properties[name].Description == "" {
				t.Errorf("%s does not describe %s", file, name)
			}
		}
		for _, name := range written.Required {
			if inferred.Properties[name] == nil {
				t.Errorf("%s requires %s, which the struct lacks", file, name)
			}
		}
	}
}

// kinds are the types of a field, without the null that a list of Go may be.
func kinds(s *jsonschema.Schema) []string {
	all := slices.Clone(s.Types)
	if s.Type != "" {
		all = append(all, s.Type)
	}
	all = slices.DeleteFunc(all, func(k string) bool { return k == "null" })
	slices.SortFunc(all, cmp.Compare[string])
	return all
}
