package roster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	// How long a worker that was lost counts among those lost lately.
	lostLately = 2 * time.Minute
	// A worker that is silent for so many of its intervals is lost.
	silentRounds = 2
	// How long a worker that starts waits for the announcements of the last minutes.
	rosterLoad = 3 * time.Second
)

// Roster is the workers of the fleet as one process has heard them. It judges how long ago that was by its own monotonic
// clock, and for what it did not hear itself by the clock of the server, never by that of a worker. Safe for
// concurrent use.
type Roster struct {
	bus  *bus.Bus
	self string
	now  func() time.Time
	news chan struct{} // buffered: a run was convicted here

	mu        sync.Mutex
	seen      map[string]sighting // by id
	convicted []conviction        // here, lately
}

// conviction explains the loss of some workers.
type conviction struct {
	workers int
	at      time.Time
}

type sighting struct {
	status messages.WorkerStatus
	at     time.Time
}

// NewRoster returns a Roster that knows no worker before Run. Self is the id of this process's worker, if it is one.
func (fl *Fleet) NewRoster(self string) *Roster {
	return &Roster{bus: fl.bus, self: self, now: time.Now, news: make(chan struct{}, 1), seen: map[string]sighting{}}
}

// Announce tells all others, and the stream, what a worker is doing. It does not wait for them: an announcement may be
// lost. A client that sees what this connection stores later has been sent it before.
func (fl *Fleet) Announce(status messages.WorkerStatus) error {
	body, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode worker %s: %w", status.ID, err)
	}
	if err := fl.bus.Conn().Publish(messages.SeenPrefix+status.ID, body); err != nil {
		return fmt.Errorf("announce worker %s: %w", status.ID, err)
	}
	return nil
}

// Run listens to announcements until ctx ends. It calls ready when those of the last minutes are known, or could not be
// read: then the Roster begins with those that it hears.
func (r *Roster) Run(ctx context.Context, ready func()) error {
	sub, err := r.bus.Conn().Subscribe(messages.SeenPrefix+"*", func(m *nats.Msg) { r.hear(m.Subject, m.Data, 0) })
	if err != nil {
		ready()
		return fmt.Errorf("listen to workers: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	loading, cancel := context.WithTimeout(ctx, rosterLoad)
	defer cancel()
	if err := r.load(loading); err != nil && ctx.Err() == nil {
		r.bus.Log().WarnContext(ctx, "the workers of the last minutes are not known", "err", err)
	}
	ready()
	<-ctx.Done()
	return nil
}

// load hears what was announced before.
func (r *Roster) load(ctx context.Context) error {
	var info struct {
		Now time.Time `json:"ts"` // by the server's clock
	}
	if err := r.bus.Call(ctx, "STREAM.INFO."+bus.StreamRoster, nil, &info); err != nil {
		return fmt.Errorf("look for stream %s: %w", bus.StreamRoster, err)
	}
	asked := time.Now()
	for at := uint64(1); ; {
		m, ok, err := r.bus.Stream(bus.StreamRoster).Get(ctx, bus.Lookup{Seq: at, Next: messages.SeenPrefix + "*"})
		if err != nil || !ok {
			return err
		}
		r.hear(m.Subject, m.Data, max(0, info.Now.Sub(m.Time)+time.Since(asked)))
		at = m.Seq + 1
	}
}

// hear notes an announcement of some age, unless a newer one of the worker is known.
func (r *Roster) hear(subject string, data []byte, age time.Duration) {
	status, err := decodeWorker(data)
	if err != nil || messages.SeenPrefix+status.ID != subject {
		r.bus.Log().Debug("an announcement is left out", "subject", strict.Clip(subject, maxSubjectShown), "err", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.now().Add(-age)
	if old, ok := r.seen[status.ID]; ok && old.at.After(at) {
		return
	}
	if _, ok := r.seen[status.ID]; !ok && len(r.seen) >= maxWorkers {
		return
	}
	r.seen[status.ID] = sighting{status, at}
}

const (
	maxSubjectShown = 200
	maxBegun        = 4096 // tenants of which a worker says how many runs it began
)

// Live are the workers that are heard and take tasks, by name.
func (r *Roster) Live() []messages.WorkerStatus {
	var out []messages.WorkerStatus
	r.each(func(s sighting, silent time.Duration) {
		if !s.status.Gone && !s.status.Draining && silent <= s.patience() {
			out = append(out, s.status)
		}
	})
	slices.SortFunc(out, func(a, b messages.WorkerStatus) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Lost is how many workers fell silent within the last two minutes without a goodbye, less those that died of runs
// which were found to be poison since; convicted reports whether there were such runs.
func (r *Roster) Lost() (n int, convicted bool) {
	explained := r.Explained()
	r.each(func(s sighting, silent time.Duration) {
		if silent <= lostLately && s.status.ID != r.self {
			explained += s.status.Explained
		}
		if over := silent - s.patience(); !s.status.Gone && over > 0 && over <= lostLately {
			n++
		}
	})
	return max(0, n-explained), explained > 0
}

// Trials is how many runs a worker had in quarantine when it was heard last; the second value is false for one that is not known.
func (r *Roster) Trials(id string) (n int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.seen[id]
	return s.status.Trials, ok
}

// Convict notes that a run which was found to be poison explains the loss of some workers. The announcements of this
// process's worker tell the others.
func (r *Roster) Convict(workers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.convicted) < maxConvictions {
		r.convicted = append(r.convicted, conviction{workers, r.now()})
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// News has an element when a run was convicted here.
func (r *Roster) News() <-chan struct{} { return r.news }

// maxConvictions bounds what a worker remembers of the last two minutes.
const maxConvictions = 10_000

// Explained is how many lost workers this process's worker lately found the cause of.
func (r *Roster) Explained() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.convicted = slices.DeleteFunc(r.convicted, func(c conviction) bool { return r.now().Sub(c.at) > lostLately })
	for _, c := range r.convicted {
		n += c.workers
	}
	return n
}

// each passes every worker with how long it has been silent, and forgets those that no longer matter.
func (r *Roster) each(f func(s sighting, silent time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for id, s := range r.seen {
		silent := now.Sub(s.at)
		if silent > bus.RosterMaxAge+s.patience() {
			delete(r.seen, id)
			continue
		}
		f(s, silent)
	}
}

// patience is how long a worker may be silent.
func (s *sighting) patience() time.Duration {
	return min(silentRounds*time.Duration(s.status.Every), bus.RosterMaxAge)
}

// decodeWorker reads what a worker says of itself. It ignores fields that it does not know: a newer worker may say more.
func decodeWorker(data []byte) (w messages.WorkerStatus, err error) {
	if err := json.Unmarshal(data, &w); err != nil {
		return w, fmt.Errorf("read a worker's answer: %w", err)
	}
	if err := w.Check(); err != nil {
		return w, errors.New("read a worker's answer: " + strings.ToValidUTF8(err.Error(), "?")) // not a field of the request
	}
	if len(w.Begun) > maxBegun {
		return w, errors.New("read a worker's answer: it names too many tenants")
	}
	return w, nil
}
