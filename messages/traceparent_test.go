package messages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestParseTraceparent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in string
		ok bool
	}{
		"the specification's":     {traceparent, true},
		"not sampled":             {traceparent[:53] + "00", true},
		"other flags":             {traceparent[:53] + "ff", true},
		"a version to come":       {"cc" + traceparent[2:], true},
		"one with more behind it": {"cc" + traceparent[2:] + "-what-the-future-will-be-like", true},
		"one with more at it":     {"cc" + traceparent[2:] + "x", false},
		"version 00 with more":    {traceparent + "-x", false},
		"version ff":              {"ff" + traceparent[2:], false},
		"empty":                   {"", false},
		"short":                   {traceparent[:54], false},
		"upper case":              {strings.ToUpper(traceparent), false},
		"no trace":                {"00-" + strings.Repeat("0", 32) + traceparent[35:], false},
		"no span":                 {traceparent[:36] + strings.Repeat("0", 16) + "-01", false},
		"not hex":                 {strings.Replace(traceparent, "4bf9", "4bg9", 1), false},
		"other separators":        {strings.ReplaceAll(traceparent, "-", "_"), false},
		"separators moved":        {"00-4bf92f3577b34da6a3ce929d0e0e47360-0f067aa0ba902b7-01", false},
		"a long version":          {"000-bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false},
		"no ASCII":                {strings.Replace(traceparent, "4b", "ä", 1), false},
		"a line break":            {traceparent[:54] + "\n", false},
		"only dashes":             {strings.Repeat("-", 55), false},
	} {
		got, err := messages.ParseTraceparent(tc.in)
		if (err == nil) != tc.ok {
			t.Errorf("%s: error %v", name, err)
		}
		if want := "00" + tc.in[min(2, len(tc.in)):min(55, len(tc.in))]; tc.ok && got.String() != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestTaskRefusesBadTraceparent(t *testing.T) {
	t.Parallel()
	task := messages.Task{Input: messages.TextInput("x"), Traceparent: "00-1-2-3"}
	task.SetDefaults()
	var field *messages.FieldError
	if err := task.Validate(); !errors.As(err, &field) || field.Field != "traceparent" {
		t.Errorf("error %v", err)
	}
}

func TestRunTrace(t *testing.T) {
	t.Parallel()
	given := messages.RunTrace(ref, traceparent)
	if !strings.HasPrefix(given.String(), traceparent[:36]) || given.String() == traceparent || !given.Sampled() {
		t.Errorf("the run of %s is %s: want another span of the same trace", traceparent, given)
	}
	if off := messages.RunTrace(ref, traceparent[:53]+"00"); off.Sampled() {
		t.Errorf("%s is sampled, and its submitter's is not", off)
	}
	own, again := messages.RunTrace(ref, ""), messages.RunTrace(ref, "garbage")
	other := messages.RunTrace(messages.Ref{Tenant: ref.Tenant, Run: ref.Run + "x"}, "")
	if own != again || own.Trace == other.Trace || own.Span == other.Span || own.Trace == given.Trace || own.Span != given.Span || !own.Sampled() {
		t.Errorf("traces of their own: %s, %s; of another run: %s", own, again, other)
	}
}
