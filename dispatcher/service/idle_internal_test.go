package service

import (
	"testing"

	"github.com/longshore-run/longshore/messages/runlog"
)

// A request that waits leaves its permit to others, and has it again when the wait is over. So many wait at most, and none when the service ends.
func TestIdle(t *testing.T) {
	s := New(Config{Controller: &runlog.Controller{}})
	begun, over := make(chan struct{}), make(chan bool)
	for range maxIdle {
		s.permits <- struct{}{} // as its handler has it
		go func() {
			over <- s.idle(func(stop <-chan struct{}) {
				begun <- struct{}{}
				<-stop
			})
			<-s.permits
		}()
		<-begun
	}
	if len(s.permits) != 0 || len(s.idling) != maxIdle {
		t.Errorf("%d that wait hold %d permits", len(s.idling), len(s.permits))
	}
	s.permits <- struct{}{}
	if s.idle(func(<-chan struct{}) { t.Error("it waits") }) {
		t.Error("one more waits")
	}
	<-s.permits
	close(s.over)
	for range maxIdle {
		if !<-over {
			t.Error("it did not wait")
		}
	}
	for range maxRequests { // all have left
		s.permits <- struct{}{}
	}
	if len(s.idling) != 0 {
		t.Errorf("%d wait", len(s.idling))
	}
}
