package schedules_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/control"
)

// An occurrence that a dispatcher had when it died is handed to another one that lives, long before an ack wait of tasks has
// passed; one that a dispatcher is slow with stays with it.
func TestDueOfADeadDispatcher(t *testing.T) {
	s := bustest.Start(t)
	b, _ := bustest.Open(t, s, bus.Config{})
	dying, nc := bustest.Open(t, s, bus.Config{})
	ref := control.ScheduleRef{Tenant: "acme", Name: "often"}
	if err := schedules.New(b).Arm(bustest.Context(t), control.Due{ScheduleRef: ref, At: time.Now().Truncate(time.Second).Add(time.Second)}, 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bustest.Context(t))
	defer cancel()
	has, first := make(chan struct{}), make(chan error, 1)
	go func() {
		first <- schedules.New(dying).Dues(ctx, func(ctx context.Context, _ control.Due) error {
			close(has)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-has
	took, second := make(chan struct{}), make(chan error, 1)
	go func() {
		second <- schedules.New(b).Dues(ctx, func(context.Context, control.Due) error {
			close(took)
			return nil
		})
	}()
	select {
	case <-took:
		t.Error("an occurrence that a living dispatcher has was given to another")
	case <-time.After(7 * time.Second): // longer than an occurrence waits for a dispatcher that says nothing
	}
	nc.Close()
	died := time.Now()
	select {
	case <-took:
	case <-ctx.Done():
		t.Fatal("no dispatcher took the occurrence")
	}
	if d := time.Since(died); d > 15*time.Second {
		t.Errorf("the occurrence waited %v for a dispatcher that was dead", d)
	}
	cancel()
	for _, done := range []chan error{first, second} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
