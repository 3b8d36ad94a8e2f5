package live_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/live"
	"github.com/longshore-run/longshore/worker/policy"
)

const (
	every  = 50 * time.Millisecond
	secret = "sk-proj-0123456789"
)

var run = messages.Ref{Tenant: "acme", Run: "r"}

// wire is what was published.
type wire struct {
	mu   sync.Mutex
	all  []messages.Live
	err  error
	held chan struct{} // not nil: publishing waits until it is closed
}

func (w *wire) publish(_ messages.Ref, l *messages.Live) error {
	w.mu.Lock()
	held := w.held
	w.mu.Unlock()
	if held != nil {
		<-held
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.all = append(w.all, *l)
	}
	return w.err
}

func (w *wire) set(err error, held chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.held = err, held
}

// told is what was published, in short.
func (w *wire) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, l := range w.all {
		s := fmt.Sprintf("%d.%d.%d %d %s %s", l.Step, l.Attempt, l.Try, l.N, l.Kind, l.Text)
		if l.Dropped > 0 {
			s += fmt.Sprintf(" (dropped %d)", l.Dropped)
		}
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

func (w *wire) reply() messages.LiveReply {
	w.mu.Lock()
	defer w.mu.Unlock()
	var r messages.LiveReply
	for i := range w.all {
		r.Add(&w.all[i])
	}
	return r
}

// play plays a call in a bubble and returns what was published.
func play(t *testing.T, f func(p *live.Publisher, w *wire, c *live.Call)) *wire {
	t.Helper()
	w := &wire{}
	synctest.Test(t, func(*testing.T) {
		p := live.New(live.Config{Publish: w.publish, Redact: policy.NewRedactor(secret)})
		f(p, w, p.Open(run, 2, 3, nil))
	})
	return w
}

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

func TestCall(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	for name, tc := range map[string]struct {
		play func(w *wire, c *live.Call)
		want []string
	}{
		"a short reply is not shown": {func(_ *wire, c *live.Call) {
			c.Add(messages.LiveText, "a")
			pass(every - 1)
			c.Add(messages.LiveText, long)
			c.Close(true)
			pass(time.Second)
		}, nil},
		"pieces are gathered": {func(_ *wire, c *live.Call) {
			c.Add(messages.LiveText, "a")
			pass(every / 2)
			c.Add(messages.LiveText, "b")
			pass(every / 2)
			c.Add(messages.LiveText, "c")
			pass(every - 1)
			c.Add(messages.LiveText, "d")
			pass(1)
			pass(time.Hour)
			c.Add(messages.LiveText, "e")
			c.Close(true)
		}, []string{"2.3.1 1 text ab", "2.3.1 2 text cd", "2.3.1 3 text e"}},
		"much is published at once, but for the first time": {func(_ *wire, c *live.Call) {
			c.Add(messages.LiveText, long)
			pass(every)
			c.Add(messages.LiveText, "a")
			c.Add(messages.LiveText, long)
			pass(0)
			c.Close(false)
		}, []string{"2.3.1 1 text " + long, "2.3.1 2 text a" + long}},
		"a reply without text": {func(_ *wire, c *live.Call) {
			pass(every)
			c.Reset()
			c.Close(true)
		}, nil},
		"what is left of a broken reply": {func(_ *wire, c *live.Call) {
			c.Add(messages.LiveText, "a")
			pass(every)
			c.Add(messages.LiveText, "b")
			c.Close(false)
			pass(every)
		}, []string{"2.3.1 1 text a"}},
		"kinds stay apart and in order": {func(_ *wire, c *live.Call) {
			c.Add(messages.LiveReasoning, "hm")
			c.Add(messages.LiveReasoning, "m")
			c.Add(messages.LiveText, "a")
			c.Add(messages.LiveReasoning, "oh")
			pass(every)
			c.Close(true)
		}, []string{"2.3.1 1 reasoning hmm", "2.3.1 2 text a", "2.3.1 3 reasoning oh"}},
		"a retry takes back what was shown": {func(_ *wire, c *live.Call) {
			c.Add(messages.LiveText, "a")
			pass(every)
			c.Add(messages.LiveText, "b")
			c.Reset()
			pass(every)
			c.Add(messages.LiveText, "Q")
			pass(every)
			c.Reset()
			c.Add(messages.LiveText, "d")
			pass(every)
			c.Close(true)
		}, []string{"2.3.1 1 text a", "2.3.2 2 reset", "2.3.2 3 text Q", "2.3.3 4 reset", "2.3.3 5 text d"}},
		"a retry before anything was shown": {func(_ *wire, c *live.Call) {
			c.Add(messages.LiveText, "a")
			c.Reset()
			c.Add(messages.LiveText, "b")
			pass(every)
			c.Close(true)
		}, []string{"2.3.2 1 text b"}},
		"a message that cannot be published": {func(w *wire, c *live.Call) {
			c.Add(messages.LiveText, "a")
			pass(every)
			w.set(errors.New("away"), nil)
			c.Add(messages.LiveText, "bcd")
			pass(every)
			c.Add(messages.LiveText, "ef")
			pass(every)
			w.set(nil, nil)
			c.Add(messages.LiveText, "g")
			pass(every)
			c.Add(messages.LiveText, "h")
			c.Close(true)
		}, []string{"2.3.1 1 text a", "2.3.1 2 text g (dropped 5)", "2.3.1 3 text h"}},
		"half a character waits for the rest": {func(_ *wire, c *live.Call) {
			c.Add(messages.LiveText, "é\xe2\x82")
			pass(every)
			c.Add(messages.LiveText, "\xac")
			pass(every)
			c.Add(messages.LiveText, "\xff!\xc3")
			c.Close(true)
		}, []string{"2.3.1 1 text é", "2.3.1 2 text €", "2.3.1 3 text \xff!\xc3"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t, func(_ *live.Publisher, w *wire, c *live.Call) { tc.play(w, c) })
			if diff := cmp.Diff(tc.want, w.told()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A secret never leaves, wherever it is split and whatever was published in between; nor does its beginning when the
// reply breaks off there.
func TestSecretsInPieces(t *testing.T) {
	const text = "It is " + secret + ", keep it."
	for _, kind := range []messages.LiveKind{messages.LiveText, messages.LiveReasoning} {
		for cut := 1; cut < len(text); cut++ {
			w := play(t, func(_ *live.Publisher, _ *wire, c *live.Call) {
				c.Add(kind, text[:cut])
				pass(every)
				c.Add(kind, text[cut:])
				pass(every)
				c.Close(true)
			})
			r := w.reply()
			if got := r.Text + r.Reasoning; got != "It is "+policy.Mark+", keep it." || r.Incomplete {
				t.Errorf("split at %d: got %q", cut, got)
			}
		}
	}
	w := play(t, func(_ *live.Publisher, _ *wire, c *live.Call) {
		for _, b := range []byte("It is " + secret[:len(secret)-1]) {
			c.Add(messages.LiveText, string(b))
			pass(every)
		}
		c.Close(false)
	})
	if r := w.reply(); r.Text != "It is " {
		t.Errorf("of a reply that breaks off in a secret: %q", r.Text)
	}
}

// A connection that accepts nothing does not block the run: the oldest text is dropped and counted, and the next message says so.
func TestOverflow(t *testing.T) {
	for shift := range len(secret) {
		w := play(t, func(p *live.Publisher, w *wire, c *live.Call) {
			c.Add(messages.LiveText, "a")
			pass(every)
			held := make(chan struct{})
			w.set(nil, held)
			c.Add(messages.LiveText, "b")
			pass(every) // "b" is stuck
			written := 0
			add := func(s string) {
				c.Add(messages.LiveText, s)
				written += len(s)
			}
			add(strings.Repeat("é", shift))
			for range 20000 {
				add(secret[:7])
				add(secret[7:] + "€")
			}
			w.set(nil, nil)
			close(held)
			pass(every)
			c.Close(true)
			told, kept := 0, 0
			for _, l := range w.all[2:] {
				told += l.Dropped
				kept += len(l.Text)
				if !utf8.ValidString(l.Text) {
					t.Errorf("got half a character in %.40q", l.Text)
				}
			}
			marked := 2*shift + 20000*len(policy.Mark+"€")
			if told == 0 || uint64(told) != p.Stats().Dropped || told+kept != marked || kept > 64<<10 || w.all[2].Dropped != told {
				t.Errorf("dropped %d, told %d, kept %d of %d", p.Stats().Dropped, told, kept, marked)
			}
			if got := p.Stats().Published; got != uint64(len(w.all)) {
				t.Errorf("counted %d messages of %d", got, len(w.all))
			}
		})
		r := w.reply()
		if !r.Incomplete {
			t.Error("no message says that text was dropped")
		}
		for n := len(secret); n >= 4; n-- {
			if strings.Contains(r.Text, secret[len(secret)-n:]) || strings.Contains(r.Text, secret[:n]) {
				t.Fatalf("%d bytes of the secret are there", n)
			}
		}
	}
}

func TestResetOfADroppedReply(t *testing.T) {
	w := play(t, func(_ *live.Publisher, w *wire, c *live.Call) {
		c.Add(messages.LiveText, "a")
		pass(every)
		w.set(errors.New("away"), nil)
		c.Add(messages.LiveText, "b")
		pass(every)
		c.Reset()
		pass(every)
		w.set(nil, nil)
		c.Add(messages.LiveText, "c")
		pass(every)
		c.Close(true)
	})
	if diff := cmp.Diff([]string{"2.3.1 1 text a", "2.3.2 2 text c"}, w.told()); diff != "" {
		t.Error(diff)
	}
	if r := w.reply(); r.Text != "c" || r.Incomplete {
		t.Errorf("got %+v", r)
	}
}

// The cost of a reply that is complete before anything of it would be shown.
func BenchmarkShortReply(b *testing.B) {
	p := live.New(live.Config{Publish: (&wire{}).publish, Redact: policy.NewRedactor(secret)})
	b.ReportAllocs()
	for b.Loop() {
		c := p.Open(run, 1, 1, nil)
		for range 8 {
			c.Add(messages.LiveText, "A piece of thirty-two bytes or so")
		}
		c.Close(true)
	}
}

// A retry is shown when it happens, and stays shown although the reply begins anew before it was published.
func TestRetriesAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		p := live.New(live.Config{Publish: w.publish, Every: every})
		c := p.Open(run, 1, 1, nil)
		c.Add(messages.LiveText, "Lost")
		c.Retry("busy; attempt 2 follows in 1s")
		c.Retry("busy; attempt 3 follows in 2s")
		c.Reset()
		c.Add(messages.LiveText, "Hello")
		time.Sleep(2 * every)
		c.Close(true)
		want := []string{
			"1.1.2 1 retry busy; attempt 2 follows in 1s", "1.1.2 2 retry busy; attempt 3 follows in 2s", "1.1.2 3 text Hello",
		}
		if diff := cmp.Diff(want, w.told()); diff != "" {
			t.Error(diff)
		}
		if r := w.reply(); r.Text != "Hello" || r.Incomplete {
			t.Errorf("%+v", r)
		}
	})
}
