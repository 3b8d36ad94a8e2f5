package strict

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// field is what the decoder knows about a field of a struct.
type field struct {
	index    []int
	nullable bool // the encoder writes its zero value as null
	// least says from where on numbers are allowed, when that is above 0 and absent means a default: the encoder never writes a 0
	// there. It is from the tags minimum and maximum, which the JSON Schemas are made from too.
	least string
}

var fieldTables sync.Map //nolint:gochecknoglobals // a cache: reflect.Type to map[string]field, never changed

// fieldsOf is the fields of a struct by their name in JSON, embedded structs flattened. An outer field hides an
// embedded one of the same name.
func fieldsOf(t reflect.Type) map[string]field {
	if known, ok := fieldTables.Load(t); ok {
		return known.(map[string]field) //nolint:forcetypeassert // nothing else is stored
	}
	table := map[string]field{}
	var embedded []reflect.StructField
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			embedded = append(embedded, f)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		table[name] = field{f.Index, !strings.Contains(options, "omitempty") && encodesNull(f.Type), least(f.Tag)}
	}
	for _, outer := range embedded {
		for name, inner := range fieldsOf(outer.Type) {
			if _, hidden := table[name]; !hidden {
				index := append(append([]int{}, outer.Index...), inner.index...)
				table[name] = field{index, inner.nullable, inner.least}
			}
		}
	}
	fieldTables.Store(t, table)
	return table
}

// encodesNull reports whether the zero value of a type is null in JSON. A type that writes itself answers for itself.
func encodesNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return true
	case reflect.Slice, reflect.Map:
		return t == reflect.TypeFor[json.RawMessage]() || !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	default:
		return false
	}
}

// least is what an error says of an integer that must not be 0; empty: it may.
func least(tag reflect.StructTag) string {
	switch most := tag.Get("maximum"); {
	case tag.Get("minimum") != "1":
		return ""
	case most == "":
		return "must be at least 1; leave it out for the default"
	default:
		return "must be 1 to " + most + "; leave it out for the default"
	}
}
