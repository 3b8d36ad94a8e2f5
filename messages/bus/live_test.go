package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
)

func piece(run messages.Ref, n int, text string) messages.Live {
	return messages.Live{
		Type: messages.TypeLive, Run: run.Run, Step: 1, Attempt: 1, Try: 1, N: n, Kind: messages.LiveText, Text: text,
	}
}

// liveWatch is a watcher of live text that hands on what it sees, until stop is called.
func liveWatch(t *testing.T, b *bus.Bus, run messages.Ref) (got chan messages.Live, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(bustest.Context(t))
	got = make(chan messages.Live)
	ended := make(chan error, 1)
	go func() {
		for l, err := range events.New(b).Live(ctx, run) {
			if err != nil {
				ended <- err
				return
			}
			select {
			case got <- l:
			case <-ctx.Done():
			}
		}
	}()
	return got, func() error {
		cancel(errEnough)
		return <-ended
	}
}

var errEnough = errors.New("enough")

// awaitLive publishes until the watcher sees something.
func awaitLive(t *testing.T, b *bus.Bus, run messages.Ref, got <-chan messages.Live) {
	t.Helper()
	probe := piece(run, 1, "probe")
	for {
		if err := events.New(b).PublishLive(run, &probe); err != nil {
			t.Fatal(err)
		}
		select {
		case <-got:
			return
		case <-time.After(10 * time.Millisecond):
		case <-bustest.Context(t).Done():
			t.Fatal("the watcher sees nothing")
		}
	}
}

// after is the first message with at least a number.
func after(t *testing.T, got <-chan messages.Live, n int) messages.Live {
	t.Helper()
	for {
		select {
		case l := <-got:
			if l.N >= n {
				return l
			}
		case <-bustest.Context(t).Done():
			t.Fatalf("message %d does not come", n)
		}
	}
}

func TestLive(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	got, stop := liveWatch(t, b, bustest.Run())
	awaitLive(t, b, bustest.Run(), got)
	other := messages.Ref{Tenant: "other", Run: bustest.Run().Run}
	foreign := piece(other, 7, "of another tenant")
	if err := events.New(b).PublishLive(other, &foreign); err != nil {
		t.Fatal(err)
	}
	stranger, _ := json.Marshal(piece(messages.Ref{Tenant: "acme", Run: "other"}, 8, "of another run"))
	for _, junk := range []string{"", "{", "null", `{"n":9}`, string(stranger)} {
		if err := nc.Publish(bustest.Run().LiveSubject(), []byte(junk)); err != nil {
			t.Fatal(err)
		}
	}
	want := piece(bustest.Run(), 2, "Hello, <wörld>")
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := events.New(b).PublishLive(bustest.Run(), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, after(t, got, 2)); diff != "" {
		t.Error(diff)
	}
	if n := b.Skipped(); n != 5 {
		t.Errorf("skipped %d, want 5", n)
	}
	if err := stop(); !errors.Is(err, errEnough) {
		t.Errorf("ended with %v", err)
	}
}

// A watcher that does not read loses messages and sees that; the publisher and other watchers do not notice.
func TestSlowLiveWatcherHarmsNobody(t *testing.T) {
	s := bustest.Start(t)
	b, _ := bustest.Open(t, s, bus.Config{})
	slowBus, _ := bustest.Open(t, s, bus.Config{})
	fastBus, _ := bustest.Open(t, s, bus.Config{})
	slow, stopSlow := liveWatch(t, slowBus, bustest.Run())
	fast, stopFast := liveWatch(t, fastBus, bustest.Run())
	awaitLive(t, b, bustest.Run(), slow)
	awaitLive(t, b, bustest.Run(), fast)
	const count = 3000
	const text = "x"
	for n := 2; n <= count; n++ {
		l := piece(bustest.Run(), n, text)
		if err := events.New(b).PublishLive(bustest.Run(), &l); err != nil {
			t.Fatal(err)
		}
		if n%100 != 0 {
			continue
		}
		if l := after(t, fast, n); l.N != n {
			t.Fatalf("the fast watcher got %d, want %d", l.N, n)
		}
	}
	l := piece(bustest.Run(), count+1, "end")
	var reply messages.LiveReply
	for reply.Text == "" || !strings.HasSuffix(reply.Text, "end") { // it reads at last; until then all is dropped
		if err := events.New(b).PublishLive(bustest.Run(), &l); err != nil {
			t.Fatal(err)
		}
		select {
		case seen := <-slow:
			reply.Add(&seen)
		case <-bustest.Context(t).Done():
			t.Fatal("the slow watcher does not come to the end")
		}
	}
	if !reply.Incomplete {
		t.Errorf("the slow watcher missed nothing of %d messages", count)
	}
	for _, stop := range []func() error{stopSlow, stopFast} {
		if err := stop(); !errors.Is(err, errEnough) {
			t.Errorf("ended with %v", err)
		}
	}
}

func TestLiveIsChecked(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	run := messages.Ref{Tenant: "acme", Run: ">"}
	l := piece(run, 1, "")
	if fe, ok := errors.AsType[*messages.FieldError](events.New(b).PublishLive(run, &l)); !ok {
		t.Errorf("publish: got %v", fe)
	}
	for _, err := range events.New(b).Live(bustest.Context(t), run) {
		if _, ok := errors.AsType[*messages.FieldError](err); !ok {
			t.Errorf("live: got %v", err)
		}
	}
	nc.Close()
	if err := events.New(b).PublishLive(bustest.Run(), &l); err == nil {
		t.Error("publish on a closed connection: got no error")
	}
	for _, err := range events.New(b).Live(bustest.Context(t), bustest.Run()) {
		if err == nil {
			t.Error("live on a closed connection: got no error")
		}
	}
}
