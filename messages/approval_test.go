package messages_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func TestHashOfArguments(t *testing.T) {
	base := messages.HashArguments(`{"a":1,"b":[true]}`)
	for name, tc := range map[string]struct {
		arguments string
		same      bool
	}{
		"spacing and order":  {" { \"b\":[ true ],\n\"a\":1}", true},
		"another value":      {`{"a":2,"b":[true]}`, false},
		"another spelling":   {`{"a":1.0,"b":[true]}`, false},
		"a field more":       {`{"a":1,"b":[true],"c":null}`, false},
		"not JSON":           {`{"a":1`, false},
		"nothing":            {"", false},
		"a large number":     {`{"a":100000000000000000001,"b":[true]}`, false},
		"the same in a list": {`[{"a":1,"b":[true]}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := messages.HashArguments(tc.arguments); (got == base) != tc.same || len(got) != 64 {
				t.Errorf("%s, want the same as %s: %v", got, base, tc.same)
			}
		})
	}
	if messages.HashArguments(`{"a":100000000000000000001}`) == messages.HashArguments(`{"a":100000000000000000000}`) {
		t.Error("two large numbers have one hash")
	}
}

func TestWhichCallsAsk(t *testing.T) {
	tools := []messages.ToolSpec{{Name: "read"}, {Name: "rm", Destructive: true}}
	for name, tc := range map[string]struct {
		approve  *messages.Approve
		read, rm bool
	}{
		"by default":  {nil, false, true},
		"empty":       {&messages.Approve{}, false, true},
		"always":      {&messages.Approve{Always: []string{"read"}}, true, true},
		"never":       {&messages.Approve{Never: []string{"rm"}}, false, false},
		"always both": {&messages.Approve{Always: []string{"read", "rm"}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := messages.Definition{Approve: tc.approve}
			if read, rm := d.AsksFor(tools, "read"), d.AsksFor(tools, "rm"); read != tc.read || rm != tc.rm || d.AsksFor(tools, "x") {
				t.Errorf("read %v, rm %v", read, rm)
			}
		})
	}
}

func TestApproveOfADefinition(t *testing.T) {
	for name, tc := range map[string]struct {
		approve messages.Approve
		field   string
	}{
		"fine":           {messages.Approve{Always: []string{"a"}, Never: []string{"b"}, Expires: messages.Duration(time.Hour), OnDeny: "end"}, ""},
		"unknown tool":   {messages.Approve{Always: []string{"c"}}, "approve.always[0]"},
		"unknown never":  {messages.Approve{Never: []string{"b", "c"}}, "approve.never[1]"},
		"twice":          {messages.Approve{Always: []string{"a", "a"}}, "approve.always[1]"},
		"both":           {messages.Approve{Always: []string{"a"}, Never: []string{"a"}}, "approve.never[0]"},
		"too short":      {messages.Approve{Expires: messages.Duration(time.Millisecond)}, "approve.expires"},
		"negative":       {messages.Approve{Expires: messages.Duration(-time.Hour)}, "approve.expires"},
		"too long":       {messages.Approve{Expires: messages.Duration(9000 * time.Hour)}, "approve.expires"},
		"unknown onDeny": {messages.Approve{OnDeny: "panic"}, "approve.onDeny"},
	} {
		t.Run(name, func(t *testing.T) {
			d := messages.Definition{Name: "x", Tools: []string{"a", "b"}, Approve: &tc.approve}
			d.SetDefaults()
			err := d.Validate()
			var field *messages.FieldError
			if errors.As(err, &field) != (tc.field != "") || field != nil && field.Field != tc.field {
				t.Errorf("%v, want one about %q", err, tc.field)
			}
		})
	}
}

func TestDecisionRequests(t *testing.T) {
	long := strings.Repeat("x", 1100)
	for name, tc := range map[string]struct {
		req   control.DecisionRequest
		field string
	}{
		"fine":            {control.DecisionRequest{Call: "c1", Hash: messages.HashArguments("{}"), By: "ann", Reason: "ok", Control: "x-1"}, ""},
		"a long call":     {control.DecisionRequest{Call: long}, "call"},
		"a short hash":    {control.DecisionRequest{Hash: "ab"}, "hash"},
		"an odd hash":     {control.DecisionRequest{Hash: strings.Repeat("G", 64)}, "hash"},
		"a long name":     {control.DecisionRequest{By: long}, "by"},
		"NUL in a reason": {control.DecisionRequest{Reason: "a\x00"}, "reason"},
		"no UTF-8":        {control.DecisionRequest{Reason: "\xff"}, "reason"},
		"an odd control":  {control.DecisionRequest{Control: "a.>"}, "control"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.req.Validate()
			var field *messages.FieldError
			if errors.As(err, &field) != (tc.field != "") || field != nil && field.Field != tc.field {
				t.Errorf("%v, want one about %q", err, tc.field)
			}
		})
	}
}
