package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
)

// mapAll maps a golden stream of events; live is what comes before an event, by its number.
func mapAll(t *testing.T, name string, live map[uint64][]messages.Live) (lines []string) {
	t.Helper()
	frames := mapFrom(t, name, place{}, live)
	lines = linesOf(t, frames)
	sound(t, name, lines)
	return lines
}

// mapFrom maps what follows a place.
func mapFrom(t *testing.T, name string, from place, live map[uint64][]messages.Live) (frames []frame) {
	t.Helper()
	f, err := os.Open(filepath.Join("../../messages/testdata/events", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var a *agui
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var e messages.Event
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if a == nil {
			a = newAGUI(e.Subject, from)
		}
		for _, l := range live[e.Number()] {
			frames = append(frames, a.delta(&l)...)
		}
		frames = append(frames, a.event(&e)...)
	}
	return frames
}

// given is what tests look at.
type given struct {
	Type       string          `json:"type"`
	MessageID  string          `json:"messageId"`
	ToolCallID string          `json:"toolCallId"`
	StepName   string          `json:"stepName"`
	Delta      string          `json:"delta"`
	Name       string          `json:"name"`
	Value      json.RawMessage `json:"value"`
}

// sound checks what a client of the protocol checks.
func sound(t *testing.T, name string, lines []string) {
	t.Helper()
	open, ended := map[string]bool{}, false
	for i, l := range lines {
		var e given
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatal(err)
		}
		if (e.Type == "RUN_STARTED") != (i == 0) || ended {
			t.Errorf("%s: %s is out of place", name, l)
		}
		key := strings.SplitN(e.Type, "_", 2)[0] + e.MessageID + e.ToolCallID + e.StepName
		switch e.Type {
		case "STEP_STARTED", "TEXT_MESSAGE_START", "TOOL_CALL_START":
			if open[key] {
				t.Errorf("%s: %s is open", name, l)
			}
			open[key] = true
		case "TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS":
			if !open[key] || e.Delta == "" {
				t.Errorf("%s: %s is of nothing", name, l)
			}
		case "STEP_FINISHED", "TEXT_MESSAGE_END", "TOOL_CALL_END":
			if !open[key] {
				t.Errorf("%s: %s is not open", name, l)
			}
			delete(open, key)
		case "RUN_FINISHED", "RUN_ERROR":
			ended = true
		}
	}
	if !ended || len(open) > 0 {
		t.Errorf("%s: ended %v, left open %v", name, ended, open)
	}
}

func TestAGUIIsGolden(t *testing.T) {
	files, err := filepath.Glob("../../messages/testdata/events/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".jsonl")
		got := []byte(strings.Join(mapAll(t, name, nil), "\n") + "\n")
		golden := filepath.Join("testdata", "agui", name+".jsonl")
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s changed; -update rewrites it:\n%s", golden, cmp.Diff(string(want), string(got)))
		}
	}
}

// What was shown while it was written is not shown again; what was given up is marked so.
func TestAGUIDeltas(t *testing.T) {
	piece := func(try, n int, kind messages.LiveKind, text string) messages.Live {
		return messages.Live{Step: 1, Attempt: 1, Try: try, N: n, Kind: kind, Text: text}
	}
	const step = "01KDZ6XV00000000000000000A.step-1"
	for name, tc := range map[string]struct {
		live []messages.Live
		want string
	}{
		"none":      {nil, "START " + step + ", CONTENT Let me look., END " + step},
		"a part":    {[]messages.Live{piece(1, 1, messages.LiveText, "Let "), piece(1, 2, messages.LiveText, "me ")}, "START " + step + ", CONTENT Let , CONTENT me , CONTENT look., END " + step},
		"all":       {[]messages.Live{piece(1, 1, messages.LiveText, "Let me look.")}, "START " + step + ", CONTENT Let me look., END " + step},
		"a retry":   {[]messages.Live{piece(1, 1, messages.LiveText, "Hm"), piece(2, 2, messages.LiveReset, ""), piece(2, 3, messages.LiveText, "Let me")}, "START " + step + ", CONTENT Hm, END " + step + ", reset " + step + ", START " + step + ".1, CONTENT Let me, CONTENT  look., END " + step + ".1"},
		"a gap":     {[]messages.Live{piece(1, 1, messages.LiveText, "Let "), piece(1, 3, messages.LiveText, "look")}, "START " + step + ", CONTENT Let , CONTENT me look., END " + step},
		"reasoning": {[]messages.Live{piece(1, 1, messages.LiveReasoning, "Hm")}, "START " + step + ", CONTENT Let me look., END " + step},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, l := range mapAll(t, "simple", map[uint64][]messages.Live{4: tc.live}) {
				var e given
				_ = json.Unmarshal([]byte(l), &e)
				kind, text := strings.CutPrefix(e.Type, "TEXT_MESSAGE_")
				switch {
				case e.Name == "longshore.reset":
					var gone given
					_ = json.Unmarshal(e.Value, &gone)
					got = append(got, "reset "+gone.MessageID)
				case text && kind != "" && strings.Contains(kind, "CONTENT"):
					got = append(got, "CONTENT "+e.Delta)
				case text:
					got = append(got, strings.TrimPrefix(e.Type, "TEXT_MESSAGE_")+" "+e.MessageID)
				}
				if e.Type == "STEP_FINISHED" {
					break
				}
			}
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
		})
	}
}

// A client that comes back after any frame gets what follows it: nothing twice, nothing left out. Live text of the time
// that it was away is lost; the end of the reply brings it.
func TestAGUIGoesOnAfterAnyFrame(t *testing.T) {
	piece := func(try, n int, kind messages.LiveKind, text string) messages.Live {
		return messages.Live{Step: 1, Attempt: 1, Try: try, N: n, Kind: kind, Text: text}
	}
	text := func(try, n int, text string) messages.Live { return piece(try, n, messages.LiveText, text) }
	reset := func(try, n int) messages.Live { return piece(try, n, messages.LiveReset, "") }
	for name, live := range map[string][]messages.Live{
		"none":           nil,
		"a part":         {text(1, 1, "Let "), text(1, 2, "me ")},
		"all":            {text(1, 1, "Let me look.")},
		"a retry":        {text(1, 1, "Hm"), reset(2, 2), text(2, 3, "Let me")},
		"two retries":    {text(1, 1, "Hm"), reset(2, 2), text(2, 3, "So"), reset(3, 4), text(3, 5, "Let"), text(3, 6, " me")},
		"a gap":          {text(1, 1, "Let "), text(1, 3, "look")},
		"another text":   {text(1, 1, "Never mind")},
		"of a next step": {{Step: 2, Attempt: 1, Try: 1, N: 1, Kind: messages.LiveText, Text: "Two "}},
	} {
		t.Run(name, func(t *testing.T) {
			pieces := map[uint64][]messages.Live{4: live}
			all := mapFrom(t, "simple", place{}, pieces)
			for i, cut := range all {
				at, ok := parsePlace(cut.id)
				if !ok || at.String() != cut.id {
					t.Fatalf("the id %q of frame %d cannot be read", cut.id, i)
				}
				for _, later := range []map[uint64][]messages.Live{nil, pieces} { // it saw no more of it, or more than the first time
					rest := mapFrom(t, "simple", at, later)
					lines := linesOf(t, append(slices.Clone(all[:i+1]), rest...))
					sound(t, fmt.Sprintf("%s, cut after frame %d", name, i), lines)
					if got, want := texts(lines), texts(linesOf(t, all)); got != want {
						t.Errorf("cut after frame %d (%s): the messages are %s, want %s", i, cut.id, got, want)
					}
				}
			}
		})
	}
}

func linesOf(t *testing.T, frames []frame) (lines []string) {
	t.Helper()
	for _, f := range frames {
		b, err := json.Marshal(f.data)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	return lines
}

// texts are the messages that a client shows at the end.
func texts(lines []string) string {
	shown, order := map[string]string{}, []string(nil)
	for _, l := range lines {
		var e given
		_ = json.Unmarshal([]byte(l), &e)
		switch {
		case e.Type == "TEXT_MESSAGE_START":
			order = append(order, e.MessageID)
		case e.Type == "TEXT_MESSAGE_CONTENT":
			shown[e.MessageID] += e.Delta
		case e.Name == "longshore.reset":
			var gone given
			_ = json.Unmarshal(e.Value, &gone)
			delete(shown, gone.MessageID)
		}
	}
	var out []string
	for _, id := range order {
		if text, ok := shown[id]; ok {
			out = append(out, text)
		}
	}
	slices.Sort(out) // live text may be ahead of the events of the step before
	return strings.Join(out, " | ")
}

func TestPlaces(t *testing.T) {
	for _, id := range []string{"x", "1.x", "1.-1", "0.1", "0~1.1.1.1.0.0.0.", "1~", "1~1.1.1.1.0.0.0.or", "1~1.1.1.1.0.0.0.x", "1~1.1.1.1.0.0.0", "1~1.1.1.99999999999.0.0.0.o", strings.Repeat("1", 200), "1~1.1.1.1.0.0.zz.o"} {
		if p, ok := parsePlace(id); ok {
			t.Errorf("%q is %+v", id, p)
		}
	}
	for _, id := range []string{"1", "12.3", "7~2.1.1.4.1.12.1f.o", "7.2~2.1.1.4.0.12.1f.ob", "7~2.1.1.4.0.12.1f.r"} {
		if p, ok := parsePlace(id); !ok || p.String() != id {
			t.Errorf("%q is %v %s", id, ok, p)
		}
	}
}
