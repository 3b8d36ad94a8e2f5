package live_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/live"
	"github.com/longshore-run/longshore/worker/policy"
)

var ran = messages.ToolCall{ID: "c1", Name: "shell"}

// outputs plays what a program writes in a bubble and returns what was published.
func outputs(t *testing.T, call messages.ToolCall, shown *record.Shown, f func(w *wire, p *live.Publisher, o *live.Output)) (*wire, live.Stats) {
	t.Helper()
	w := &wire{}
	var stats live.Stats
	synctest.Test(t, func(*testing.T) {
		p := live.New(live.Config{Publish: w.publish, Redact: policy.NewRedactor(secret), Every: every})
		f(w, p, p.OpenOutput(run, 2, 3, call, shown))
		stats = p.Stats()
	})
	return w, stats
}

// assembled is what a watcher sees.
func assembled(w *wire) (o messages.LiveOutput) {
	for i := range w.all {
		o.Add(&w.all[i])
	}
	return o
}

// What a program writes is shown while it runs, in order, with its call, and numbered by itself; a secret that comes in pieces is not
// shown, nor half a character.
func TestOutputIsShown(t *testing.T) {
	w, _ := outputs(t, ran, nil, func(_ *wire, p *live.Publisher, o *live.Output) {
		other := p.OpenOutput(run, 2, 3, messages.ToolCall{ID: "c2", Name: "shell"}, nil)
		o.Add([]byte("compile\n" + secret[:9]))
		other.Add([]byte("beside"))
		pass(2 * every)
		o.Add([]byte(secret[9:] + " \xe6\x97"))
		pass(2 * every)
		o.Add([]byte("\xa5"))
		o.Add(nil)
		pass(2 * every)
		o.Add([]byte("done"))
		o.Close(true)
		other.Close(true)
	})
	var own, beside wire
	for _, l := range w.all {
		if l.Kind != messages.LiveToolOutput || l.Tool != "shell" || l.Step != 2 || l.Attempt != 3 {
			t.Errorf("published %+v", l)
		}
		if l.CallID == "c1" {
			own.all = append(own.all, l)
		} else {
			beside.all = append(beside.all, l)
		}
	}
	if got := assembled(&own); got.Text != "compile\n"+policy.Mark+" 日done" || got.Incomplete || got.N < 3 {
		t.Errorf("a watcher sees %+v", got)
	}
	if got := assembled(&beside); got.Text != "beside" || got.Incomplete {
		t.Errorf("beside it %+v", got)
	}
	if r := w.reply(); r != (messages.LiveReply{}) {
		t.Errorf("it is taken for a reply: %+v", r)
	}
}

// A program that ends at once is not shown before its result is; one that was cut off does not show what may begin a secret.
func TestOutputThatIsNotShown(t *testing.T) {
	w, _ := outputs(t, ran, nil, func(_ *wire, _ *live.Publisher, o *live.Output) {
		o.Add([]byte("quick"))
		o.Close(true)
		pass(2 * every)
	})
	if len(w.all) > 0 {
		t.Errorf("published %v", w.told())
	}
	w, _ = outputs(t, ran, nil, func(_ *wire, _ *live.Publisher, o *live.Output) {
		o.Add([]byte("slow"))
		pass(2 * every)
		o.Add([]byte(" " + secret[:9]))
		o.Close(false)
		pass(2 * every)
	})
	if got := assembled(w); got.Text != "slow" {
		t.Errorf("a watcher sees %+v", got)
	}
	for name, tc := range map[string]struct {
		call  messages.ToolCall
		shown *record.Shown
	}{
		"results are not shown": {ran, &record.Shown{NoOutputs: true}},
		"a long id":             {messages.ToolCall{ID: strings.Repeat("x", 300), Name: "shell"}, nil},
	} {
		w, _ := outputs(t, tc.call, tc.shown, func(_ *wire, _ *live.Publisher, o *live.Output) {
			o.Add([]byte(strings.Repeat("x", 1<<11)))
			pass(2 * every)
			o.Close(true)
		})
		if len(w.all) > 0 {
			t.Errorf("%s: published %v", name, w.told())
		}
	}
}

// What is published of a call is bounded, and what is lost is counted, in the messages and by the worker.
func TestOutputIsBounded(t *testing.T) {
	const chunk, n = 32 << 10, 64 // 2 MiB
	w, stats := outputs(t, ran, nil, func(_ *wire, _ *live.Publisher, o *live.Output) {
		for range n {
			o.Add([]byte(strings.Repeat("x", chunk)))
			pass(2 * every)
		}
		o.Close(true)
	})
	size := 0
	for _, l := range w.all {
		size += len(l.Text)
	}
	if size != 1<<20 || stats.Dropped != n*chunk-1<<20 {
		t.Errorf("%d bytes were published, %d dropped", size, stats.Dropped)
	}
	if got := assembled(w); len(got.Text) != 64<<10 || !got.Incomplete {
		t.Errorf("a watcher keeps %d bytes, incomplete %v", len(got.Text), got.Incomplete)
	}
	w, stats = outputs(t, ran, nil, func(w *wire, _ *live.Publisher, o *live.Output) {
		o.Add([]byte("first"))
		pass(2 * every)
		w.set(errors.New("lost"), nil)
		o.Add([]byte("gone"))
		pass(2 * every)
		w.set(nil, nil)
		o.Add([]byte("last"))
		pass(2 * every)
		o.Close(true)
	})
	if got := assembled(w); got.Text != "firstlast" || !got.Incomplete || w.all[1].Dropped != 4 || stats.Dropped != 4 {
		t.Errorf("a watcher sees %+v, the worker counts %+v", got, stats)
	}
}
