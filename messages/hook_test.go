package messages_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

func TestHookDefaults(t *testing.T) {
	t.Parallel()
	given := []messages.Hook{{On: messages.HookPreTool, URL: "https://a/"}, {On: messages.HookPostTool, URL: "https://a/"}}
	d := messages.Definition{Name: "a", Hooks: given}
	d.SetDefaults()
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	noDiff(t, "hooks", []messages.Hook{
		{On: messages.HookPreTool, URL: "https://a/", Timeout: messages.Duration(5 * time.Second), OnFailure: messages.HookFail},
		{On: messages.HookPostTool, URL: "https://a/", Timeout: messages.Duration(5 * time.Second), OnFailure: messages.HookIgnore},
	}, d.Hooks)
	if given[0].OnFailure != "" {
		t.Error("the caller's hooks were changed")
	}
}

func TestHooksAreChecked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 3<<10)
	for name, tt := range map[string]struct {
		json  string
		field string
	}{
		"point":             {`{"on":"sometimes","url":"https://a/"}`, "hooks[0].on"},
		"no point":          {`{"url":"https://a/"}`, "hooks[0].on"},
		"no url":            {`{"on":"pre_tool"}`, "hooks[0].url"},
		"file":              {`{"on":"pre_tool","url":"file:///etc/passwd"}`, "hooks[0].url"},
		"no host":           {`{"on":"pre_tool","url":"https:///x"}`, "hooks[0].url"},
		"opaque":            {`{"on":"pre_tool","url":"http:a"}`, "hooks[0].url"},
		"password":          {`{"on":"pre_tool","url":"https://me:pw@a/"}`, "hooks[0].url"},
		"fragment":          {`{"on":"pre_tool","url":"https://a/#b"}`, "hooks[0].url"},
		"zone":              {`{"on":"pre_tool","url":"http://[fe80::1%25eth0]/"}`, "hooks[0].url"},
		"long url":          {`{"on":"pre_tool","url":"https://a/` + long + `"}`, "hooks[0].url"},
		"timeout":           {`{"on":"pre_tool","url":"https://a/","timeout":"31s"}`, "hooks[0].timeout"},
		"negative timeout":  {`{"on":"pre_tool","url":"https://a/","timeout":"-1s"}`, "hooks[0].timeout"},
		"failure":           {`{"on":"pre_tool","url":"https://a/","onFailure":"shrug"}`, "hooks[0].onFailure"},
		"header name":       {`{"on":"pre_tool","url":"https://a/","headers":{"a b":"c"}}`, "hooks[0].headers.a b"},
		"header line break": {`{"on":"pre_tool","url":"https://a/","headers":{"X-A":"a\nX-B: c"}}`, "hooks[0].headers.X-A"},
		"host header":       {`{"on":"pre_tool","url":"https://a/","headers":{"host":"b"}}`, "hooks[0].headers.host"},
		"own header":        {`{"on":"pre_tool","url":"https://a/","headers":{"longshore-signature":"b"}}`, "hooks[0].headers.longshore-signature"},
		"secret":            {`{"on":"pre_tool","url":"https://a/","headers":{"authorization":"Bearer b"}}`, "hooks[0].headers.authorization"},
		"long header":       {`{"on":"pre_tool","url":"https://a/","headers":{"X-A":"` + long + `"}}`, "hooks[0].headers.X-A"},
		"both":              {`{"on":"pre_tool","url":"https://a/","command":"a"}`, "hooks[0].command"},
		"command as path":   {`{"on":"pre_tool","command":"/bin/sh"}`, "hooks[0].command"},
		"command with args": {`{"on":"pre_tool","command":"rm -r"}`, "hooks[0].command"},
		"long command":      {`{"on":"pre_tool","command":"` + long + `"}`, "hooks[0].command"},
		"command headers":   {`{"on":"pre_tool","command":"a","headers":{"X-A":"b"}}`, "hooks[0].headers"},
		"command of tokens": {`{"on":"on_tokens","command":"a"}`, "hooks[0].command"},
		"too many":          {strings.Repeat(`{"on":"pre_tool","url":"https://a/"},`, messages.MaxHooks) + `{"on":"pre_tool","url":"https://a/"}`, "hooks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d messages.Definition
			err := strict.Decode([]byte(`{"name":"a","hooks":[`+tt.json+`]}`), &d)
			if err == nil {
				d.SetDefaults()
				err = d.Validate()
			}
			var fe *messages.FieldError
			if !errors.As(err, &fe) || fe.Field != tt.field {
				t.Errorf("%v, want an error of %s", err, tt.field)
			}
		})
	}
}

func TestHookNameShowsNoQuery(t *testing.T) {
	t.Parallel()
	h := messages.Hook{URL: "https://hooks.example.com/a?key=secret#part"}
	if got := h.Name(); got != "https://hooks.example.com/a" {
		t.Errorf("name %q", got)
	}
	if h = (messages.Hook{Command: "no-secrets"}); h.Name() != "command no-secrets" {
		t.Errorf("name %q", h.Name())
	}
}
