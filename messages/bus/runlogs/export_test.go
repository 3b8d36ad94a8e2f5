package runlogs

import (
	"time"

	"github.com/nats-io/nats.go"
)

// Appending makes it look as if so many appends were on their way.
func (st *Store) Appending(n int64) { st.pacer.appends.Add(n) }

// FewAppends is how many appends hold nothing back.
const FewAppends = fewAppends

// Unanswered makes it look as if so many events were on their way to a server that has just acknowledged one.
func (st *Store) Unanswered(n uint64) error {
	st.flights.mu.Lock()
	defer st.flights.mu.Unlock()
	if err := st.flights.listen(); err != nil {
		return err
	}
	st.flights.heard = time.Now()
	for i := range n {
		st.flights.waiting[1<<63+i] = &flight{box: &outbox{landed: make(chan struct{}, 1)}}
	}
	return nil
}

// MaxFlying is how many events on their way let no more go that are held back.
const MaxFlying = maxFlying

// AckSilence is how long they may do so after the last acknowledgement.
const AckSilence = ackSilence

// SendAgain sends an event so many times.
func (st *Store) SendAgain(subject string, times int) {
	f := &flight{box: &outbox{landed: make(chan struct{}, 1), header: nats.Header{}}, letter: letter{subject: subject, id: "1"}}
	for range times {
		st.flights.send(f)
	}
}

// Flying is how many events are on their way.
func (st *Store) Flying() int {
	st.flights.mu.Lock()
	defer st.flights.mu.Unlock()
	return len(st.flights.waiting)
}

// Abandon makes it look as if all were sent long ago.
func (st *Store) Abandon() {
	st.flights.mu.Lock()
	defer st.flights.mu.Unlock()
	for _, f := range st.flights.waiting {
		f.sent = f.sent.Add(-2 * abandoned)
	}
}

// SweepEvery is the number of events after which unacknowledged ones are dropped.
const SweepEvery = sweepEvery

// Bytes is how much is held.
func (r *Recent) Bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
