package messages_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// inner is embedded in outer: its fields appear among the others.
type inner struct {
	Embedded string `json:"embedded,omitempty"`
	Name     string `json:"name,omitempty"` // hidden by the outer one
}

// outer has a field of every type that the decoder knows.
type outer struct {
	inner

	Name     string           `json:"name,omitempty"`
	Flag     bool             `json:"flag,omitempty"`
	Small    int8             `json:"small,omitempty"`
	Count    uint64           `json:"count,omitempty"`
	Ratio    float64          `json:"ratio,omitempty"`
	Pointer  *int             `json:"pointer,omitempty"`
	Price    *float64         `json:"price"`
	List     []string         `json:"list,omitempty"`
	Kept     []inner          `json:"kept"`
	Map      map[string]int   `json:"map,omitempty"`
	Nested   *outer           `json:"nested,omitempty"`
	Bytes    []byte           `json:"bytes,omitempty"`
	Raw      json.RawMessage  `json:"raw,omitempty"`
	Any      any              `json:"any,omitempty"`
	Time     time.Time        `json:"time"`
	Until    *time.Time       `json:"until,omitempty"`
	Input    messages.Input   `json:"input"`
	Inputs   []messages.Input `json:"inputs,omitempty"`
	Ignored  string           `json:"-"`
	Untagged string
	hidden   map[string]string //nolint:unused // no JSON may reach it
}

func TestDecodeFillsEveryType(t *testing.T) {
	t.Parallel()
	one, price, until := 1, 0.5, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := outer{
		inner: inner{Embedded: "e"}, Name: "näme \"\\/\b\f\n\r\t € 😀", Flag: true, Small: -128, Count: math.MaxUint64,
		Ratio: -1.5e-7, Pointer: &one, Price: &price, List: []string{"", "a"}, Kept: []inner{{Name: "k"}, {}},
		Map: map[string]int{"": 1, "b.c": -2}, Nested: &outer{Input: messages.TextInput("x")}, Bytes: []byte{0, 1, 255},
		Raw: json.RawMessage(`{ "b":[null, 1e999] }`), Any: map[string]any{"a": []any{nil, true, 1.5, "s"}},
		Time: until, Until: &until, Input: messages.Input{{Text: "a"}, {Text: "b"}},
		Inputs: []messages.Input{messages.TextInput("a"), {}}, Untagged: "u",
	}
	in := ` {"embedded" : "e", "name":"n\u00e4me \"\\\/\b\f\n\r\t \u20AC \ud83d\ude00", "flag":true, "small":-128,
		"count":18446744073709551615, "ratio":-1.5e-7, "pointer":1, "price":0.5, "list":["","a"],
		"kept":[{"name":"k"},{}], "map":{"":1,"b.c":-2}, "nested":{"input":"x"}, "bytes":"AAH/",
		"raw": { "b":[null, 1e999] } , "any":{"a":[null,true,1.5,"s"]}, "time":"2026-01-02T03:04:05Z",
		"until":"2026-01-02T03:04:05Z", "input":[{"text":"a"},{"text":"b"}], "inputs":["a",[]], "Untagged":"u"}` + "\n\t"
	var got outer
	if err := strict.Decode([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outer{})); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeAllowsNullWhereTheEncoderWritesIt(t *testing.T) {
	t.Parallel()
	got := outer{Kept: []inner{{}}, Price: new(float64)}
	if err := strict.Decode([]byte(`{"price":null,"kept":null,"any":null,"raw":[null]}`), &got); err != nil {
		t.Fatal(err)
	}
	if got.Price != nil || got.Kept != nil || got.Any != nil {
		t.Errorf("null did not reset the fields: %+v", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	deep := func(open, closed string, n int) string { return strings.Repeat(open, n) + strings.Repeat(closed, n) }
	for name, tc := range map[string]struct{ in, field, reason string }{
		"nothing":                 {"", "body", "is empty"},
		"white space":             {" \n", "body", "is empty"},
		"a byte order mark":       {"\ufeff{}", "body", "not valid JSON at byte 0"},
		"a comment":               {"{}//", "body", "unexpected data after the value at byte 2"},
		"trailing object":         {"{} {}", "body", "unexpected data after the value at byte 3"},
		"trailing NUL":            {"{}\x00", "body", "unexpected data after the value at byte 2"},
		"null":                    {"null", "body", "null is not allowed"},
		"nul":                     {"nul", "body", "not valid JSON: it ends too early"},
		"another type":            {"[]", "body", "must be an object, not an array"},
		"unknown field":           {`{"nope":1}`, "nope", "unknown field"},
		"other case":              {`{"Name":""}`, "Name", "unknown field: did you mean name?"},
		"two letters exchanged":   {`{"anme":""}`, "anme", "unknown field: did you mean name?"},
		"a part of a name":        {`{"tagged":""}`, "tagged", "unknown field: did you mean Untagged?"},
		"too long for a slip":     {`{"` + strings.Repeat("name", 20) + `":""}`, strings.Repeat("name", 16) + "…", "unknown field"},
		"untagged in other case":  {`{"untagged":""}`, "untagged", "unknown field: did you mean Untagged?"},
		"field without JSON":      {`{"Ignored":""}`, "Ignored", "unknown field"},
		"its tag":                 {`{"-":""}`, "-", "unknown field"},
		"unexported field":        {`{"hidden":{}}`, "hidden", "unknown field"},
		"the embedded type":       {`{"inner":{}}`, "inner", "unknown field"},
		"empty key":               {`{"":1}`, "", "unknown field"},
		"key twice":               {`{"name":"","name":""}`, "name", "given twice"},
		"key twice, escaped":      {`{"name":"","n\u0061me":""}`, "name", "given twice"},
		"key twice in a map":      {`{"map":{"a":1,"a":1}}`, "map.a", "given twice"},
		"key twice in free JSON":  {`{"any":[{"a":{"b":1,"b":2}}]}`, "any[0].a.b", "given twice"},
		"key twice in raw JSON":   {`{"raw":{"b":1,"b":2}}`, "raw.b", "given twice"},
		"null for a string":       {`{"name":null}`, "name", "null is not allowed"},
		"null for a slice":        {`{"list":null}`, "list", "null is not allowed"},
		"null in a slice":         {`{"list":["",null]}`, "list[1]", "null is not allowed"},
		"null in a map":           {`{"map":{"a":null}}`, "map.a", "null is not allowed"},
		"null for a pointer":      {`{"pointer":null}`, "pointer", "null is not allowed"},
		"null for a time":         {`{"time":null}`, "time", "null is not allowed"},
		"null for raw JSON":       {`{"raw":null}`, "raw", "null is not allowed"},
		"null for an input":       {`{"input":null}`, "input", "null is not allowed"},
		"number for a string":     {`{"name":1}`, "name", "must be a string, not a number"},
		"string for a number":     {`{"ratio":"1"}`, "ratio", "must be a number, not a string"},
		"string for an integer":   {`{"small":"1"}`, "small", "must be an integer, not a string"},
		"string for a boolean":    {`{"flag":"true"}`, "flag", "must be true or false, not a string"},
		"boolean for an object":   {`{"nested":false}`, "nested", "must be an object, not a boolean"},
		"object for a slice":      {`{"list":{}}`, "list", "must be an array, not an object"},
		"object for bytes":        {`{"bytes":[1]}`, "bytes", "must be a string in base64, not an array"},
		"no base64":               {`{"bytes":"?"}`, "bytes", "must be a string in base64"},
		"fraction":                {`{"small":1.0}`, "small", "must be an integer that fits in 8 bits"},
		"exponent":                {`{"count":1e2}`, "count", "must be an integer that fits in 64 bits"},
		"too large":               {`{"small":128}`, "small", "must be an integer that fits in 8 bits"},
		"negative":                {`{"count":-1}`, "count", "must be an integer that fits in 64 bits"},
		"too large a float":       {`{"ratio":1e999}`, "ratio", "must be a number that fits in 64 bits"},
		"too large a free number": {`{"any":1e999}`, "any", "holds a number that does not fit"},
		"leading zero":            {`{"small":01}`, "small", "not valid JSON at byte 9"},
		"plus":                    {`{"small":+1}`, "small", "not valid JSON at byte 9"},
		"minus alone":             {`{"small":-}`, "small", "not valid JSON at byte 9"},
		"infinity":                {`{"ratio":-Infinity}`, "ratio", "not valid JSON at byte 9"},
		"no time":                 {`{"time":"today"}`, "time", "must be a time such as 2026-01-02T15:04:05Z"},
		"number for a time":       {`{"until":1}`, "until", "must be a time such as 2026-01-02T15:04:05Z"},
		"invalid UTF-8":           {"{\"name\":\"\xff\"}", "name", "invalid UTF-8"},
		"UTF-8 of a surrogate":    {"{\"name\":\"\xed\xa0\x80\"}", "name", "invalid UTF-8"},
		"overlong UTF-8":          {"{\"name\":\"\xc0\xaf\"}", "name", "invalid UTF-8"},
		"UTF-8 cut by an escape":  {"{\"name\":\"\xc3\\u00a4\"}", "name", "invalid UTF-8"},
		"invalid UTF-8 in a key":  {"{\"\xff\":1}", "body", "invalid UTF-8"},
		"invalid UTF-8 in raw":    {"{\"raw\":[\"\xff\"]}", "raw[0]", "invalid UTF-8"},
		"high surrogate alone":    {`{"name":"\ud800"}`, "name", "invalid Unicode: half of a surrogate pair"},
		"high surrogate, text":    {`{"name":"\ud800x"}`, "name", "invalid Unicode: half of a surrogate pair"},
		"high surrogate twice":    {`{"name":"\ud800\ud800"}`, "name", "invalid Unicode: half of a surrogate pair"},
		"low surrogate alone":     {`{"name":"\udc00"}`, "name", "invalid Unicode: half of a surrogate pair"},
		"half a pair in raw JSON": {`{"raw":{"a":"\ud800"}}`, "raw.a", "invalid Unicode: half of a surrogate pair"},
		"half a pair, cut":        {`{"name":"\ud800\u`, "name", "not valid JSON: it ends too early"},
		"unknown escape":          {`{"name":"\x"}`, "name", "not valid JSON at byte 10"},
		"no hexadecimal":          {`{"name":"\u00g0"}`, "name", "not valid JSON at byte 10"},
		"a sign for hexadecimal":  {`{"name":"\u+123"}`, "name", "not valid JSON at byte 10"},
		"a raw newline":           {"{\"name\":\"\n\"}", "name", "not valid JSON at byte 9"},
		"a raw NUL":               {"{\"name\":\"\x00\"}", "name", "not valid JSON at byte 9"},
		"text without end":        {`{"name":"a`, "name", "not valid JSON: it ends too early"},
		"escape without end":      {`{"name":"a\`, "name", "not valid JSON: it ends too early"},
		"object without end":      {`{"name":"a"`, "body", "not valid JSON: it ends too early"},
		"array without end":       {`{"list":["a",`, "list[1]", "not valid JSON: it ends too early"},
		"no colon":                {`{"name" "a"}`, "name", "not valid JSON at byte 8"},
		"no comma":                {`{"name":"a" "flag":true}`, "body", "not valid JSON at byte 12"},
		"comma before the end":    {`{"name":"a",}`, "body", "not valid JSON at byte 12"},
		"comma in an empty array": {`{"list":[,]}`, "list[0]", "not valid JSON at byte 9"},
		"single quotes":           {`{'name':1}`, "body", "not valid JSON at byte 1"},
		"a bare word":             {`{"name":name}`, "name", "not valid JSON at byte 9"},
		"a wrong literal":         {`{"flag":trub}`, "flag", "not valid JSON at byte 11"},
		"too deep":                {`{"any":` + deep("[", "]", 64) + "}", "any" + strings.Repeat("[0]", 63), "nested deeper than 64"},
		"too deep, typed":         {deep(`{"nested":`, "}", 65), strings.Repeat("nested.", 36)[:252] + "nest… (191 more bytes)", "nested deeper than 64"},
		"a field of an input":     {`{"input":[{"text":"a"},{"text":1}]}`, "input[1].text", "must be a string, not a number"},
		"an unknown one there":    {`{"inputs":["",[{"a":1}]]}`, "inputs[1][0].a", "unknown field"},
		"an input of other type":  {`{"input":1}`, "input", "must be a string or an array, not a number"},
		"long key":                {`{"` + strings.Repeat("ä", 40) + `":1}`, strings.Repeat("ä", 32) + "…", "unknown field"},
		"key that is no text":     {`{"a\u0000\n\u202eb":1}`, "a???b", "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := strict.Decode([]byte(tc.in), new(outer))
			fe, ok := errors.AsType[*messages.FieldError](err)
			if !ok {
				t.Fatalf("got %v, want a *FieldError", err)
			}
			if diff := cmp.Diff(messages.FieldError{Field: tc.field, Reason: tc.reason}, *fe); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeOfDepthLimit(t *testing.T) {
	t.Parallel()
	var v any
	if err := strict.Decode([]byte(strings.Repeat("[", 64)+strings.Repeat("]", 64)), &v); err != nil {
		t.Error(err)
	}
}

func TestDecodeIntoWhatCannotHoldJSON(t *testing.T) {
	t.Parallel()
	var nothing *messages.Task
	for name, v := range map[string]any{
		"nil": nil, "no pointer": messages.Task{}, "a nil pointer": nothing, "a channel": new(chan int), "a map of ints": new(map[int]int),
	} {
		for _, in := range []string{`{"a":1}`, `1`} {
			wantFieldError(t, name, strict.Decode([]byte(in), v))
		}
	}
}

// wantFieldError checks what every error about an input promises.
func wantFieldError(t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := errors.AsType[*messages.FieldError](err); !ok {
		t.Fatalf("%s: got %v, want a *FieldError", what, err)
	}
	if s := err.Error(); !utf8.ValidString(s) || len(s) >= 1<<10 {
		t.Errorf("%s: the error is %d bytes or invalid UTF-8: %.100q", what, len(s), s)
	}
}

func typicalTask() []byte {
	return []byte(`{"id":"01JD0000000000000000000000","tenant":"acme","agent":"reviewer","input":"` +
		strings.Repeat("Read the files and tell what is wrong with them. ", 20) +
		`","context":{"repository":"longshore","files":["a.go","b.go"],"lines":[1,2,3]},"session":"s-1","priority":"high",` +
		`"labels":{"team":"core","stage":"test"},"limits":{"maxSteps":10}}`)
}

func BenchmarkDecode(b *testing.B) {
	data := typicalTask()
	b.Run("strict", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v messages.Task
			if err := strict.Decode(data, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v plainTask
			if err := json.Unmarshal(data, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// plainTask is a Task that encoding/json decodes alone.
type plainTask struct {
	ID       string            `json:"id"`
	Tenant   string            `json:"tenant"`
	Agent    string            `json:"agent"`
	Input    string            `json:"input"`
	Context  json.RawMessage   `json:"context"`
	Session  string            `json:"session"`
	Priority string            `json:"priority"`
	Labels   map[string]string `json:"labels"`
	Limits   *messages.Limits  `json:"limits"`
}
