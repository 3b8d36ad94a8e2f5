package messages

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
		table[name] = field{f.Index, !strings.Contains(options, "omitempty") && encodesNull(f.Type)}
	}
	for _, outer := range embedded {
		for name, inner := range fieldsOf(outer.Type) {
			if _, hidden := table[name]; !hidden {
				index := append(append([]int{}, outer.Index...), inner.index...)
				table[name] = field{index, inner.nullable}
			}
		}
	}
	fieldTables.Store(t, table)
	return table
}

// encodesNull tells whether the zero value of a type is null in JSON. A type that writes itself answers for itself.
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
