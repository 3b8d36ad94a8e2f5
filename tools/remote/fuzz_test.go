package remote

import (
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// Whatever a program answers is told in valid text of bounded size in which nothing hides, and an answer that cannot be read leaves the
// effect of a call with the effect once open.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`{"text":"ok"}`, `{"text":"no","error":true}`, `{"text":"a","meta":{"b":1}}`, `{"text":"\u202e\u0000"}`, `{}`, ``, `[]`, `{"text":1}`, `{"text":"a"}{`, "{\"text\":\"\xff\"}", `{"meta":{"a":{"a":[[[]]]}}}`,
	} {
		f.Add([]byte(s), "", "")
	}
	f.Add([]byte(nil), "busy", "503")
	f.Add([]byte(nil), "\x1b[2J\u202e", "40\n0")
	f.Add([]byte(`{"text":"ok"}`), "", "429")
	f.Fuzz(func(t *testing.T, data []byte, text, code string) {
		for _, effect := range []messages.Effect{messages.EffectOnce, messages.EffectIdempotent, messages.EffectRead} {
			const most = 1 << 10
			served := &tool{def: &Definition{Name: "echo", Effect: effect}, bytes: most}
			m := nats.NewMsg("answer")
			m.Data = data
			if text != "" || code != "" {
				m.Header.Set(errorHeader, text)
				m.Header.Set(codeHeader, code)
			}
			r := served.read(m)
			if len(r.Content) != 1 || tools.Plain(r.Content[0].Text) != r.Content[0].Text || len(r.Content[0].Text) > 3*most+maxError {
				t.Errorf("a model is told %+v", r.Content)
			}
			if r.Transient && code != "429" && code != "503" {
				t.Errorf("%q is asked again", data)
			}
			if open := r.Code == messages.CodeToolUnknownOutcome; open && effect != messages.EffectOnce {
				t.Errorf("the outcome of a call with the effect %s is unknown", effect)
			}
		}
	})
}

// Whatever a program says that it serves, it takes no other tool's name or subject, and only the operator's definition is served.
func FuzzServed(f *testing.F) {
	def := &Definition{Name: "echo", same: []byte(`{"name":"echo"}`)}
	for _, s := range [][3]string{
		{"tools.echo", "q", `{"name":"echo"}`},
		{"tools.echo", "", `{ "name" : "echo" }`},
		{"tools.>", "q", `{"name":"echo"}`},
		{"tools.other", "q", `{"name":"other"}`},
		{"tools.a b", "q", `{"name":"a b"}`},
		{"tools.echo", "q", `{"name":"echo","name":"x"}`},
		{"tools.echo", "q", `{"Name":"echo"}`},
		{"tools.", "q", `{}`},
		{"tools.echo", "q", `[`},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, subject, group, definition string) {
		w := &watch{log: slog.New(slog.DiscardHandler), tools: map[string]*tool{"echo": {def: def}}, strangers: map[string]bool{}}
		found := map[string]*seen{}
		w.learn(t.Context(), found, subject, group, definition)
		for name, s := range found {
			if name != "echo" || subject != "tools.echo" {
				t.Errorf("%s at %s was taken for a tool", name, subject)
			}
			if s.other == def.is(definition) {
				t.Errorf("%s is the operator's: %v", definition, s.other)
			}
		}
	})
}
