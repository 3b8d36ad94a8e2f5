package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/jsonscan"
)

func ExampleMembers() {
	err := jsonscan.Members([]byte(`{"model": "m", "usage": {"total": 7}, "text": "a long one"}`), func(name, value []byte) error {
		if string(name) != "text" {
			fmt.Printf("%s is %s\n", name, value)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// model is "m"
	// usage is {"total": 7}
	// <nil>
}

func inputs() []string {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	all := []string{
		`{}`, `{"a":1}`, ` { "a" : [ 1 , -2.5e+10 , true , false , null , "x\n\u00fF\"" ] , "" : { } } `, `{"a":1,"a":2}`, `{"\u0061":1}`,
		``, ` `, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{a:1}`, `{"a":1}}`, `{"a":1} x`, `[1,]`, `[,1]`, `[1 2]`, `]`, `"`, `"\`, `"\u12`, `"\u12g4"`, `"\x"`,
		"\"a\tb\"", "\"a\x00b\"", "\"\x7f\xff\x80\"", `01`, `-`, `-0`, `1.`, `.5`, `1e`, `1e+`, `1E-7`, `+1`, `0x1`, `tru`, `truee`, `nul`, `NaN`, `"ab" `, "\ufeff{}",
		deep(10_000), deep(10_001), nested(10_000), nested(10_001), `{"a":` + deep(9_999) + `}`, `{"a":` + deep(10_000) + `}`,
	}
	for n := range 20 { // what is found eight bytes at a time
		for _, c := range []string{`\"`, `\\`, "\x1f", " ", "!", "#", "\x80", "\xa2", "\xdc"} {
			all = append(all, `"`+strings.Repeat("x", n)+c+strings.Repeat("y", 19-n)+`"`, `["`+strings.Repeat("\xff", n)+c+`","`+c+`"]`)
		}
	}
	return all
}

// FuzzScan compares what is accepted and found with what encoding/json accepts and finds.
func FuzzScan(f *testing.F) {
	for _, in := range inputs() {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		valid := json.Valid(data)
		if got := jsonscan.Valid(data); got != valid {
			t.Fatalf("valid is %t, want %t", got, valid)
		}
		object := valid && bytes.TrimLeft(data, " \t\r\n")[0] == '{'
		got := map[string]json.RawMessage{}
		err := jsonscan.Members(data, func(name, value []byte) error {
			if !json.Valid(value) {
				t.Errorf("%s is no value", value)
			}
			var text string
			if err := json.Unmarshal([]byte(`"`+string(name)+`"`), &text); err != nil {
				t.Error(err)
			}
			got[text] = value
			return nil
		})
		if (err == nil) != object {
			t.Fatalf("error %v of an object: %t", err, object)
		}
		if !object {
			return
		}
		want := map[string]json.RawMessage{}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if !bytes.Equal(got[name], value) {
				t.Errorf("%q is %s, want %s", name, got[name], value)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d names, want %d", len(got), len(want))
		}
	})
}

// The function ends the scan.
func TestMembersEnd(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	n := 0
	err := jsonscan.Members([]byte(`{"a":1,"b":2,"c"`), func([]byte, []byte) error {
		if n++; n == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || n != 2 {
		t.Errorf("%v after %d members", err, n)
	}
}

func BenchmarkValid(b *testing.B) {
	data, err := json.Marshal(map[string]any{"stepId": "step-1", "text": strings.Repeat("some text, and \"more\" ", 25), "usage": map[string]int{"input": 12, "output": 3, "total": 15}})
	if err != nil {
		b.Fatal(err)
	}
	for name, valid := range map[string]func([]byte) bool{"ours": jsonscan.Valid, "json": json.Valid} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if !valid(data) {
					b.Fatal("not valid")
				}
			}
		})
	}
}
