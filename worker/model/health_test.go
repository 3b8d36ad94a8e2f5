package model_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/worker/circuit"
	"github.com/longshore-run/longshore/worker/model"
)

// Health tells of every endpoint, called or not, how calls went and whether its circuit lets them through.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plant{}
		r := breaking(t, p)
		if h := r.Health(); len(h) != 1 || h[0].Endpoint != "p" || h[0].State != circuit.Closed || h[0].Answered+h[0].Failed != 0 {
			t.Fatalf("before a call: %+v", h)
		}
		for range 2 {
			if _, failed := ask(t.Context(), r, model.Request{Model: "m"}); failed != nil {
				t.Fatal(failed)
			}
		}
		p.set(busy(), nil)
		for range 4 { // the last is not made: the circuit is open
			if _, failed := ask(t.Context(), r, model.Request{Model: "m"}); failed == nil {
				t.Fatal("it answers")
			}
		}
		h := r.Health()
		if len(h) != 2 || h[1].Model != "m" {
			t.Fatalf("%+v", h)
		}
		if m := h[1]; m.Answered != 2 || m.Failed != 3 || m.State != circuit.Open || m.Failures != 3 || m.Last != model.Overloaded || time.Until(m.Until) != 40*time.Second {
			t.Errorf("%+v", m)
		}
	})
}
