package messages_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
)

func TestDecodeLive(t *testing.T) {
	t.Parallel()
	const good = `{"type":"longshore.live.v1","run":"r","step":1,"attempt":1,"try":1,"n":1,"kind":"text","text":"a"}`
	run := messages.Ref{Tenant: "acme", Run: "r"}
	for name, tc := range map[string]struct{ old, new, field string }{
		"good":           {"", "", ""},
		"a newer field":  {`"n":1`, `"n":1,"mood":"fine"`, ""},
		"a newer kind":   {`"text",`, `"tool_arguments",`, ""},
		"no JSON":        {"{", "", "body"},
		"a list":         {good, "[]", "body"},
		"another type":   {"live.v1", "live.v2", "type"},
		"another run":    {`"r"`, `"other"`, "run"},
		"no step":        {`"step":1`, `"step":0`, "step"},
		"a huge step":    {`"step":1`, `"step":4294967296`, "step"},
		"no attempt":     {`"attempt":1`, `"attempt":-1`, "attempt"},
		"no try":         {`"try":1,`, ``, "try"},
		"no number":      {`"n":1`, `"n":0`, "n"},
		"less than none": {`"n":1`, `"n":1,"dropped":-1`, "dropped"},
		"a hostile kind": {`"text",`, `"\u001b[2J",`, "kind"},
		"too long":       {`"a"`, `"` + strings.Repeat("a", 1<<20+1) + `"`, "text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := messages.DecodeLive(run, []byte(strings.Replace(good, tc.old, tc.new, 1)))
			fe, _ := errors.AsType[*messages.FieldError](err)
			if tc.field == "" && err != nil || tc.field != "" && (fe == nil || fe.Field != tc.field) {
				t.Errorf("got %v, want a mistake in %q", err, tc.field)
			}
		})
	}
}

func TestLiveReply(t *testing.T) {
	t.Parallel()
	text := func(step, attempt, try, n int, text string) messages.Live {
		return messages.Live{Step: step, Attempt: attempt, Try: try, N: n, Kind: messages.LiveText, Text: text}
	}
	reset := func(step, attempt, try, n int) messages.Live {
		return messages.Live{Step: step, Attempt: attempt, Try: try, N: n, Kind: messages.LiveReset}
	}
	dropped := text(1, 1, 1, 2, "c")
	dropped.Dropped = 1
	for name, tc := range map[string]struct {
		in         []messages.Live
		text       string
		incomplete bool
		ignored    int
	}{
		"pieces":               {[]messages.Live{text(1, 1, 1, 1, "a"), text(1, 1, 1, 2, "b")}, "ab", false, 0},
		"twice":                {[]messages.Live{text(1, 1, 1, 1, "a"), text(1, 1, 1, 1, "a")}, "a", false, 1},
		"a gap":                {[]messages.Live{text(1, 1, 1, 1, "a"), text(1, 1, 1, 3, "c")}, "ac", true, 0},
		"joined late":          {[]messages.Live{text(1, 1, 1, 7, "g")}, "g", true, 0},
		"dropped":              {[]messages.Live{text(1, 1, 1, 1, "a"), dropped}, "ac", true, 0},
		"reset":                {[]messages.Live{text(1, 1, 1, 1, "a"), reset(1, 1, 2, 2), text(1, 1, 2, 3, "b")}, "b", false, 0},
		"reset after a gap":    {[]messages.Live{text(1, 1, 1, 1, "a"), reset(1, 1, 2, 5), text(1, 1, 2, 6, "b")}, "b", false, 0},
		"a lost reset":         {[]messages.Live{text(1, 1, 1, 1, "a"), text(1, 1, 2, 3, "b")}, "b", true, 0},
		"next step":            {[]messages.Live{text(1, 2, 3, 4, "a"), text(2, 2, 1, 1, "b")}, "b", false, 0},
		"next attempt":         {[]messages.Live{text(1, 1, 3, 4, "a"), text(1, 2, 1, 1, "b")}, "b", false, 0},
		"after a step":         {[]messages.Live{text(2, 1, 1, 1, "b"), text(1, 9, 9, 9, "a")}, "b", false, 1},
		"of a worker cut off":  {[]messages.Live{text(1, 2, 1, 1, "b"), text(1, 1, 9, 9, "a"), text(1, 2, 1, 2, "c")}, "bc", false, 1},
		"of a try given up":    {[]messages.Live{reset(1, 1, 2, 1), text(1, 1, 1, 2, "a")}, "", false, 1},
		"kinds of the future":  {[]messages.Live{text(1, 1, 1, 1, "a"), {Step: 1, Attempt: 1, Try: 1, N: 2, Kind: "x", Text: "x"}, text(1, 1, 1, 3, "b")}, "ab", false, 0},
		"more than anyone has": {[]messages.Live{text(1, 1, 1, 1, strings.Repeat("é", 40<<10))}, strings.Repeat("é", 32<<10), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r messages.LiveReply
			ignored := 0
			for _, l := range tc.in {
				if !r.Add(&l) {
					ignored++
				}
			}
			if r.Text != tc.text || r.Incomplete != tc.incomplete || ignored != tc.ignored || !utf8.ValidString(r.Text) {
				t.Errorf("got %.40q, incomplete %v, %d ignored", r.Text, r.Incomplete, ignored)
			}
		})
	}
}

// What a program writes is put together call by call; it is of no reply.
func TestLiveOutput(t *testing.T) {
	t.Parallel()
	piece := func(step, attempt int, call string, n int, text string) messages.Live {
		return messages.Live{Step: step, Attempt: attempt, Try: 1, N: n, Kind: messages.LiveToolOutput, CallID: call, Text: text}
	}
	dropped := piece(1, 1, "a", 2, "c")
	dropped.Dropped = 1
	for name, tc := range map[string]struct {
		in         []messages.Live
		text       string
		incomplete bool
		ignored    int
	}{
		"pieces":              {[]messages.Live{piece(1, 1, "a", 1, "a"), piece(1, 1, "a", 2, "b")}, "ab", false, 0},
		"twice":               {[]messages.Live{piece(1, 1, "a", 1, "a"), piece(1, 1, "a", 1, "a")}, "a", false, 1},
		"a gap":               {[]messages.Live{piece(1, 1, "a", 1, "a"), piece(1, 1, "a", 3, "c")}, "ac", true, 0},
		"dropped":             {[]messages.Live{piece(1, 1, "a", 1, "a"), dropped}, "ac", true, 0},
		"another call":        {[]messages.Live{piece(1, 1, "a", 9, "a"), piece(1, 1, "b", 1, "b")}, "b", false, 0},
		"the next attempt":    {[]messages.Live{piece(1, 1, "a", 2, "a"), piece(1, 2, "a", 1, "b")}, "b", false, 0},
		"of a worker cut off": {[]messages.Live{piece(1, 2, "a", 1, "b"), piece(1, 1, "a", 9, "a")}, "b", false, 1},
		"text of a reply":     {[]messages.Live{piece(1, 1, "a", 1, "a"), {Step: 1, Attempt: 1, Try: 1, N: 2, Kind: messages.LiveText, Text: "x"}}, "a", false, 1},
		"much":                {[]messages.Live{piece(1, 1, "a", 1, strings.Repeat("é", 40<<10))}, strings.Repeat("é", 32<<10), true, 0},
	} {
		var o messages.LiveOutput
		var r messages.LiveReply
		ignored := 0
		for _, l := range tc.in {
			if !o.Add(&l) {
				ignored++
			} else if r.Add(&l) {
				t.Errorf("%s: it is taken for a reply", name)
			}
		}
		if o.Text != tc.text || o.Incomplete != tc.incomplete || ignored != tc.ignored {
			t.Errorf("%s: got %.40q, incomplete %v, %d ignored", name, o.Text, o.Incomplete, ignored)
		}
	}
}
