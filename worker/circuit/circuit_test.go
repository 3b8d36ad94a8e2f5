package circuit_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/worker/circuit"
)

// server is a circuit with a clock that stands still.
type server struct {
	*circuit.Circuit
	t   *testing.T
	now time.Time
}

func newServer(t *testing.T, c circuit.Config) *server {
	t.Helper()
	s := &server{t: t, now: time.Unix(1e9, 0)}
	c.Now = func() time.Time { return s.now }
	s.Circuit = circuit.New(c)
	return s
}

// enter must be permitted.
func (s *server) enter() circuit.Pass {
	s.t.Helper()
	p, ok := s.Enter()
	if !ok {
		s.t.Fatalf("not permitted: %+v", s.Status())
	}
	return p
}

// refused must not be permitted an operation, and be told to wait.
func (s *server) refused(wait time.Duration) {
	s.t.Helper()
	if _, ok := s.Enter(); ok || s.Wait() != wait {
		s.t.Fatalf("permitted %t, or to wait for %s instead of %s: %+v", ok, s.Wait(), wait, s.Status())
	}
}

// fail lets n operations fail; the last must open the circuit, or none.
func (s *server) fail(n int, opens bool) {
	s.t.Helper()
	for i := range n {
		if opened := s.Fail(s.enter(), circuit.Failure{}); opened != (opens && i == n-1) {
			s.t.Fatalf("failure %d opened it: %t", i+1, opened)
		}
	}
}

func TestThreeFailuresInARowOpen(t *testing.T) {
	s := newServer(t, circuit.Config{First: time.Second})
	s.fail(2, false)
	if s.Succeed(s.enter()) {
		t.Error("a success closed a closed circuit")
	}
	late := s.enter()
	s.fail(3, true)
	s.refused(time.Second)
	if s.Fail(late, circuit.Failure{AtLeast: time.Hour}) {
		t.Error("opened twice")
	}
	for range 3 { // each probe fails, and without Longest the circuit is open for the same time again
		s.now = s.now.Add(time.Second)
		if s.Status().State != circuit.HalfOpen || s.Wait() != 0 {
			t.Fatalf("%+v, wait %s", s.Status(), s.Wait())
		}
		p := s.enter()
		s.refused(time.Second) // one probe at a time
		if s.Fail(p, circuit.Failure{}) {
			t.Error("a probe opened what was open")
		}
		s.refused(time.Second)
	}
	s.now = s.now.Add(time.Second)
	if !s.Succeed(s.enter()) || !s.IsClosed() || s.Status() != (circuit.Status{State: circuit.Closed}) {
		t.Errorf("a probe that was answered leaves %+v", s.Status())
	}
	s.fail(2, false)
}

// An operation that ends without saying anything about the server leaves the probe to the next one.
func TestWithdrawnProbe(t *testing.T) {
	s := newServer(t, circuit.Config{Failures: 1, First: time.Second, Probing: time.Minute})
	s.fail(1, true)
	s.now = s.now.Add(time.Second)
	p := s.enter()
	s.refused(time.Minute)
	s.Withdraw(circuit.Pass{}) // not the probe
	s.refused(time.Minute)
	s.Withdraw(p)
	s.Succeed(s.enter())
	if !s.IsClosed() {
		t.Errorf("%+v", s.Status())
	}
}

func TestHowLongItIsOpen(t *testing.T) {
	jitter := 0.5
	s := newServer(t, circuit.Config{Failures: 1, First: time.Second, Longest: 10 * time.Second, Random: func() float64 { return jitter }})
	s.fail(1, true)
	for _, test := range []struct {
		failure circuit.Failure
		jitter  float64
		want    time.Duration
	}{
		{circuit.Failure{}, 0.5, 2 * time.Second},
		{circuit.Failure{}, 0, 3 * time.Second},
		{circuit.Failure{}, 0.5, 8 * time.Second},
		{circuit.Failure{}, 0.5, 10 * time.Second},
		{circuit.Failure{AtLeast: time.Hour}, 0, 10 * time.Second},
	} {
		s.now = s.now.Add(s.Wait())
		jitter = test.jitter
		s.Fail(s.enter(), test.failure)
		s.refused(test.want)
	}
	s.now = s.now.Add(s.Wait())
	s.Succeed(s.enter())
	jitter = 0.5
	s.Fail(s.enter(), circuit.Failure{Lasting: true})
	s.refused(10 * time.Second)
}

func TestNeverOpens(t *testing.T) {
	s := newServer(t, circuit.Config{Failures: -1, First: time.Second})
	s.fail(100, false)
	if s.Status().Failures != 100 {
		t.Errorf("%+v", s.Status())
	}
}
