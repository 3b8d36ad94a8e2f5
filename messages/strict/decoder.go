package strict

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder walks JSON and fills Go values on the way.
type decoder struct {
	data  []byte
	pos   int  // of the next byte to read
	depth int  // how many arrays and objects are open
	limit int  // of depth
	newer bool // the writer may be newer: unknown fields are ignored
	name  string
	path  []segment // where pos is
	keys  [][]byte  // of the objects that are open, from the outermost on
}

// segment is a step down: into a field or key, or into an element, whose key is nil.
type segment struct {
	key   []byte
	index int
}

// fail is the error of the place where the decoder is.
func (d *decoder) fail(format string, args ...any) error {
	return &FieldError{Field: d.where(), Reason: fmt.Sprintf(format, args...)}
}

func (d *decoder) where() string {
	var b strings.Builder
	if len(d.path) == 0 || d.path[0].key == nil {
		b.WriteString(d.name)
	}
	for i, s := range d.path {
		switch {
		case s.key == nil:
			fmt.Fprintf(&b, "[%d]", s.index)
		case i > 0:
			b.WriteString("." + Shown(string(s.key)))
		default:
			b.WriteString(Shown(string(s.key)))
		}
	}
	return Clip(b.String(), MaxPath)
}

func (d *decoder) decode(v any) error {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return d.fail("cannot be read into %T", v)
	}
	if d.space(); d.pos == len(d.data) {
		return d.fail("is empty")
	}
	if err := d.value(p.Elem(), false); err != nil {
		return err
	}
	if d.space(); d.pos < len(d.data) {
		return d.fail("unexpected data after the value at byte %d", d.pos)
	}
	return nil
}

// value reads a value of any type.
func (d *decoder) value(v reflect.Value, nullable bool) error {
	d.space()
	switch kind := v.Kind(); {
	case d.peek() == 'n' && kind != reflect.Interface:
		return d.null(v, nullable)
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(v.Elem(), false)
	case kind == reflect.Interface:
		return d.free(v)
	}
	if u, ok := reflect.TypeAssert[json.Unmarshaler](v.Addr()); ok {
		return d.own(u)
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.fields(v)
	case reflect.Map:
		return d.entries(v)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return d.bytes(v)
		}
		return d.list(v)
	case reflect.String:
		return d.string(v)
	case reflect.Bool:
		return d.bool(v)
	default:
		return d.numeric(v)
	}
}

func (d *decoder) null(v reflect.Value, nullable bool) error {
	if err := d.literal("null"); err != nil {
		return err
	}
	if !nullable {
		return d.fail("null is not allowed")
	}
	v.SetZero()
	return nil
}

// raw reads any value and returns its bytes.
func (d *decoder) raw() ([]byte, error) {
	d.space()
	start := d.pos
	err := d.skip()
	return d.data[start:d.pos], err
}

// free reads into an interface what encoding/json would.
func (d *decoder) free(v reflect.Value) error {
	raw, err := d.raw()
	if err != nil {
		return err
	}
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		return d.fail("holds a number that does not fit")
	}
	return nil
}

// own lets a type read itself, once its bytes are known to be sound.
func (d *decoder) own(u json.Unmarshaler) error {
	raw, err := d.raw()
	if err != nil {
		return err
	}
	err = u.UnmarshalJSON(raw)
	if err == nil {
		return nil
	}
	if _, ok := u.(*time.Time); ok {
		return d.fail("must be a time such as 2026-01-02T15:04:05Z")
	}
	fe, ok := errors.AsType[*FieldError](err)
	if !ok {
		return d.fail("%s", Shown(err.Error()))
	}
	return Under(d.where(), fe)
}

func (d *decoder) fields(v reflect.Value) error {
	known := fieldsOf(v.Type())
	return d.members(func(key []byte) error {
		f, ok := known[string(key)]
		switch {
		case !ok && d.newer:
			_, err := d.raw()
			return err
		case !ok:
			if near := Nearest(string(key), slices.Sorted(maps.Keys(known))); near != "" {
				return d.fail("unknown field: did you mean %s?", near)
			}
			return d.fail("unknown field")
		}
		to := v.FieldByIndex(f.index)
		if err := d.value(to, f.nullable); err != nil {
			return err
		}
		if f.least != "" && to.IsZero() {
			return d.fail("%s", f.least)
		}
		return nil
	})
}

func (d *decoder) entries(v reflect.Value) error {
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		return d.fail("cannot be read into %s", t)
	}
	v.Set(reflect.MakeMap(t))
	return d.members(func(key []byte) error {
		e := reflect.New(t.Elem()).Elem()
		if err := d.value(e, false); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(string(key)).Convert(t.Key()), e)
		return nil
	})
}

func (d *decoder) list(v reflect.Value) error {
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	return d.elements(func(i int) error {
		v.Grow(1)
		v.SetLen(i + 1)
		return d.value(v.Index(i), false)
	})
}

func (d *decoder) string(v reflect.Value) error {
	if d.peek() != '"' {
		return d.mismatch("a string")
	}
	s, err := d.text()
	v.SetString(string(s))
	return err
}

func (d *decoder) bytes(v reflect.Value) error {
	if d.peek() != '"' {
		return d.mismatch("a string in base64")
	}
	s, err := d.text()
	if err != nil {
		return err
	}
	b, err := base64.StdEncoding.Strict().AppendDecode([]byte{}, s)
	if err != nil {
		return d.fail("must be a string in base64")
	}
	v.SetBytes(b)
	return nil
}

func (d *decoder) bool(v reflect.Value) error {
	switch d.peek() {
	case 't':
		v.SetBool(true)
		return d.literal("true")
	case 'f':
		v.SetBool(false)
		return d.literal("false")
	default:
		return d.mismatch("true or false")
	}
}

func (d *decoder) numeric(v reflect.Value) error {
	want := "an integer"
	if v.CanFloat() {
		want = "a number"
	}
	if !isNumber(d.peek()) {
		return d.mismatch(want)
	}
	n, err := d.number()
	if err != nil {
		return err
	}
	switch {
	case v.CanInt():
		var i int64
		i, err = strconv.ParseInt(string(n), 10, v.Type().Bits())
		v.SetInt(i)
	case v.CanUint():
		var u uint64
		u, err = strconv.ParseUint(string(n), 10, v.Type().Bits())
		v.SetUint(u)
	case v.CanFloat():
		var f float64
		f, err = strconv.ParseFloat(string(n), v.Type().Bits())
		v.SetFloat(f)
	default:
		return d.fail("cannot be read into %s", v.Type())
	}
	if err != nil {
		return d.fail("must be %s that fits in %d bits", want, v.Type().Bits())
	}
	return nil
}

// mismatch is the error of a value of another type.
func (d *decoder) mismatch(want string) error {
	var got string
	switch c := d.peek(); {
	case c == '{':
		got = "an object"
	case c == '[':
		got = "an array"
	case c == '"':
		got = "a string"
	case c == 't', c == 'f':
		got = "a boolean"
	case isNumber(c):
		got = "a number"
	default:
		return d.invalid()
	}
	return d.fail("must be %s, not %s", want, got)
}
