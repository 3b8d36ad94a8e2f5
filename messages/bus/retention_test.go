package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// A run is purged once its end is old enough, and no run that has not ended is.
func TestRetain(t *testing.T) {
	b, _ := openNew(t)
	ended, goes := messages.Ref{Tenant: "acme", Run: "ended"}, messages.Ref{Tenant: "acme", Run: "goes-on"}
	for _, run := range []messages.Ref{ended, goes} {
		h := messages.Follow(run, messages.Head{}, &messages.Claimed{Claim: "c"})
		h.ID, h.Time = "01", time.Now()
		if _, err := b.Append(ctxFor(t), run, 0, messages.Entry{Head: h, Records: []messages.Record{&messages.Claimed{Claim: "c"}}}); err != nil {
			t.Fatal(err)
		}
	}
	finished := messages.Events(ended, messages.Entry{
		Head: messages.Head{FirstEvent: 1, Events: 2, Time: time.Now()}, Records: []messages.Record{&messages.Finished{}},
	})[1]
	if err := b.Open(ended).Finish(ctxFor(t), finished); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctxFor(t))
	done := make(chan error, 1)
	go func() { done <- b.Retain(ctx, time.Millisecond) }()
	for { // every look asks the stream's leader
		_, ok, err := b.Last(ctxFor(t), ended)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, ok, err := b.Last(ctxFor(t), goes); !ok || err != nil {
		t.Errorf("the run that goes on: %v, %v", ok, err)
	}
	if ok, err := b.Ended(ctxFor(t), ended); !ok || err != nil {
		t.Errorf("its end is kept among the events: %v, %v", ok, err)
	}
}
