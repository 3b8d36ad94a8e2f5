package tools_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/files"
)

func TestBeside(t *testing.T) {
	type args struct {
		On string `json:"on,omitempty"`
	}
	family, err := files.Tools()
	if err != nil {
		t.Fatal(err)
	}
	answer := func(context.Context, tools.Call, args) (tools.Result, error) { return tools.Text("ok"), nil }
	for name, effect := range map[string]messages.Effect{"look": messages.EffectRead, "put": messages.EffectIdempotent, "post": messages.EffectOnce} {
		tool, err := tools.FuncOn(messages.ToolSpec{Name: name, Description: "T.", Effect: effect}, func(in args) string { return in.On }, answer)
		if err != nil {
			t.Fatal(err)
		}
		family = append(family, tool)
	}
	set, err := tools.NewSet(family...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		a, with, b, and string
		want            bool
	}{
		{"look", `{}`, "look", `{}`, true},
		{"look", `{}`, "put", `{"on":"a"}`, false},
		{"look", `{"on":"b"}`, "put", `{"on":"a"}`, true},
		{"put", `{"on":"a"}`, "put", `{"on":"b"}`, true},
		{"put", `{"on":"a"}`, "put", `{"on":"a"}`, false},
		{"put", `{"on":"a"}`, "put", `{"on":"a/b"}`, false},
		{"put", `{"on":"a"}`, "put", `{"on":"ab"}`, true},
		{"put", `{}`, "put", `{}`, false},
		{"post", `{"on":"a"}`, "post", `{"on":"b"}`, false},
		{"post", `{"on":"a"}`, "look", `{"on":"b"}`, false},
		{"gone", `{}`, "look", `{}`, false},
		{"put", ``, "put", `{"on":"a"}`, false},
		{"write_file", `{"filePath":"a.txt","content":""}`, "write_file", `{"filePath":"b.txt","content":""}`, true},
		{"write_file", `{"filePath":"a.txt","content":""}`, "write_file", `{"filePath":"./x/../A.txt","content":""}`, false},
		{"write_file", `{"filePath":"a","content":""}`, "write_file", `{"filePath":"a/b","content":""}`, false},
		{"write_file", `{"filePath":"a.txt","content":""}`, "read_file", `{"filePath":"b.txt"}`, true},
		{"write_file", `{"filePath":"a.txt","content":""}`, "read_file", `{"filePath":"a.txt"}`, false},
		{"write_file", `{"filePath":"a.txt","content":""}`, "list_files", `{}`, false},
	} {
		a, b := set.Claim(tc.a, json.RawMessage(tc.with)), set.Claim(tc.b, json.RawMessage(tc.and))
		if a.Beside(b) != tc.want || b.Beside(a) != tc.want {
			t.Errorf("%s%s beside %s%s: %v, want %v", tc.a, tc.with, tc.b, tc.and, a.Beside(b), tc.want)
		}
	}
}
