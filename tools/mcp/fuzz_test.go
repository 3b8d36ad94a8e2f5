package mcp

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// Whatever a process writes, reading it ends with an error or with messages of bounded size, and its answers can be told.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n\n{"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"\u001b"}}` + "\n[[[[" + `{"jsonrpc":"2.0","id":1,"result":{"content":[null,{"type":"image","data":"AA=="},{"type":"resource","resource":{}}],"isError":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = w.Write(data)
			_ = w.Close()
		}()
		const most = 1 << 10
		l := newLines(r, w, most)
		defer func() { _ = l.Close() }()
		s := &server{name: "s"}
		for range len(data) + 1 {
			msg, err := l.Read(t.Context())
			if err != nil {
				return
			}
			m, ok := msg.(*jsonrpc.Response)
			if !ok {
				continue
			}
			if len(m.Result) > most {
				t.Fatalf("a message of %d bytes", len(m.Result))
			}
			var res sdk.CallToolResult
			if json.Unmarshal(m.Result, &res) != nil {
				continue
			}
			for _, b := range s.result(&res).Content {
				if b.Image == nil && tools.Plain(b.Text) != b.Text {
					t.Errorf("a model is told %q", b.Text)
				}
			}
		}
		t.Error("there is no end")
	})
}

// Whatever a server defines is refused, or it is a tool that calls can be checked by.
func FuzzDefinition(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string"}}}`, `{"$ref":"#"}`, `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`,
		`{"anyOf":[{"type":"object"}],"$schema":"http://json-schema.org/draft-07/schema#"}`, `[]`, `{"properties":{"a":null}}`, `{"allOf":{"a":1},"$ref":"#/allOf"}`, `{"enum":[{"$ref":"x"}]}`,
	} {
		f.Add("echo", "Says it again.", s)
	}
	f.Fuzz(func(t *testing.T, name, description, schema string) {
		var tree any
		if json.Unmarshal([]byte(schema), &tree) != nil {
			return
		}
		p, err := define("s", &sdk.Tool{Name: name, Description: description, InputSchema: tree})
		if err != nil {
			if text := err.Error(); tools.Plain(text) != text || len(text) > 1<<10 {
				t.Errorf("the reason is %q", text)
			}
			return
		}
		spec, err := p.spec("s", name, messages.EffectOnce)
		if err != nil {
			t.Fatal(err)
		}
		set, err := tools.NewSet(described{spec})
		if err != nil {
			t.Fatal(err)
		}
		if len(spec.Description) > maxDescription || len(spec.InputSchema) > maxSchema || tools.Plain(spec.Description) != spec.Description || strings.Contains(string(spec.InputSchema), `"$ref":"`) {
			t.Errorf("%q %s", spec.Description, spec.InputSchema)
		}
		set.Check(messages.ToolCall{Name: spec.Name, Arguments: `{"a":{"b":[1,"c"]}}`}, []messages.ToolSpec{spec})
	})
}
