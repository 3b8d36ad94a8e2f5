package settings

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"text/tabwriter"
)

type field struct{ name, def, help, kind, field string }

// must is what a value of the variable has to be, in words.
func (f field) must() string {
	switch f.kind {
	case "time.Duration":
		return "a time such as " + cmp.Or(f.def, "30s")
	case "bool":
		return "true or false"
	case "float64":
		return "a number such as " + cmp.Or(f.def, "0.5")
	default:
		if strings.Contains(f.kind, "int") {
			return "a whole number such as " + cmp.Or(f.def, "10")
		}
		return "a " + f.kind
	}
}

// fields lists the variables of a settings struct in the order of their definition.
func fields(v any) []field {
	var out []field
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for f := range t.Fields() {
		if f.Anonymous {
			out = append(out, fields(reflect.New(f.Type).Interface())...)
			continue
		}
		if !f.IsExported() {
			continue
		}
		kind := strings.TrimPrefix(f.Type.String(), "*")
		out = append(out, field{f.Tag.Get("env"), f.Tag.Get("envDefault"), f.Tag.Get("help"), kind, f.Name})
	}
	return out
}

// Variable is one variable of the environment.
type Variable struct{ Name, Default, Help string }

// Variables are those of a settings struct, in the order of their definition.
func Variables(v any) []Variable {
	var out []Variable
	for _, f := range fields(v) {
		out = append(out, Variable{f.name, f.def, f.help})
	}
	return out
}

// Describe returns one line for each variable of a settings struct: name, default, meaning.
func Describe(v any) string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for _, f := range fields(v) {
		def := f.def
		if def == "" {
			def = "-"
		}
		_, _ = fmt.Fprintf(tw, "  %s\t%s\t%s\n", f.name, def, f.help) // a Builder takes everything
	}
	_ = tw.Flush()
	return b.String()
}
