package runlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// ErrSessionFull means that too many runs wait for their turn in a session.
var ErrSessionFull = fmt.Errorf("%d runs of the session wait already", messages.MaxSessionRuns)

// Sessions keeps the order of each session. Safe for concurrent use.
type Sessions interface {
	// Session returns the order of a session and its revision, never stale. An unknown session is empty; a lost one is rebuilt from
	// the heads of its runs (see RebuildSession).
	Session(ctx context.Context, tenant, name string) (s messages.Session, revision uint64, err error)
	// PutSession stores an order in place of the one of a revision. ErrConflict: another one is stored.
	PutSession(ctx context.Context, tenant, name string, revision uint64, s messages.Session) error
}

// JoinSession enters a claimed run into the order of its session and reports whether it has its turn, and then which
// runs ended before it, oldest first. Doing it again is harmless. A run that has no turn parks; Close then sees to it
// that the turn comes. ErrSessionFull: there is no room.
func (k *Controller) JoinSession(ctx context.Context, run messages.Ref, name string) (turn bool, ended []string, err error) {
	err = k.changeSession(ctx, run.Tenant, name, func(s *messages.Session) (bool, error) {
		i := slices.Index(s.Runs, run.Run)
		if i >= 0 {
			turn, ended = i == 0, s.Ended
			return false, nil
		}
		if j := slices.Index(s.Ended, run.Run); j >= 0 {
			last, ok, err := k.Log.Last(ctx, run)
			if err != nil {
				return false, fmt.Errorf("read %s: %w", run, err)
			}
			if ok && last.Head.Phase == record.PhaseFinished {
				return false, ErrEnded // while its owner was cut off
			}
			s.Ended = slices.Delete(s.Ended, j, j+1) // another run of that id, which is long gone
		}
		if len(s.Runs) >= messages.MaxSessionRuns {
			return false, ErrSessionFull
		}
		s.Runs = append(s.Runs, run.Run)
		turn, ended = len(s.Runs) == 1, s.Ended
		return true, nil
	})
	return turn, ended, err
}

// changeSession stores what change makes of a session, unless it is false.
func (k *Controller) changeSession(ctx context.Context, tenant, name string, change func(*messages.Session) (bool, error)) error {
	order := stored[messages.Session]{
		read: func() (s messages.Session, revision uint64, err error) {
			if s, revision, err = k.Sessions.Session(ctx, tenant, name); err != nil {
				err = fmt.Errorf("read session %s: %w", name, err)
			}
			return s, revision, err
		},
		put: func(revision uint64, s messages.Session) error {
			s.Time = k.Now()
			if err := k.Sessions.PutSession(ctx, tenant, name, revision, s); err != nil {
				return fmt.Errorf("store session %s: %w", name, err)
			}
			return nil
		},
	}
	return order.update(ctx, func(s *messages.Session, _ bool) (bool, error) { return change(s) })
}

// leaveSession takes a run that has ended out of the order and gives the turn to the next one.
func (k *Controller) leaveSession(ctx context.Context, run messages.Ref, h record.Head) error {
	if h.Session == "" || k.Sessions == nil {
		return nil
	}
	if err := k.removeFromSession(ctx, run, h.Session, h.Turn); err != nil {
		return err
	}
	return k.grantTurn(ctx, run.Tenant, h.Session)
}

func (k *Controller) removeFromSession(ctx context.Context, run messages.Ref, name string, had bool) error {
	return k.changeSession(ctx, run.Tenant, name, func(s *messages.Session) (bool, error) {
		i := slices.Index(s.Runs, run.Run)
		if i < 0 {
			return false, nil
		}
		s.Runs = slices.Delete(slices.Clone(s.Runs), i, i+1)
		if had {
			s.Remember(run.Run)
		}
		return true, nil
	})
}

// ErrSessionBusy means that runs of the session have not ended.
var ErrSessionBusy = errors.New("the session has runs that have not ended yet")

// ForgetSession makes the next run of a session begin a new conversation, and returns what the session was. ErrNotFound:
// nothing is known of it. ErrSessionBusy: it has runs.
func (k *Controller) ForgetSession(ctx context.Context, tenant, name string) (messages.Session, error) {
	if err := k.grantTurn(ctx, tenant, name); err != nil { // takes out what has ended
		return messages.Session{}, err
	}
	var was messages.Session
	err := k.changeSession(ctx, tenant, name, func(s *messages.Session) (bool, error) {
		switch was = *s; {
		case len(s.Runs) > 0:
			return false, ErrSessionBusy
		case s.Empty():
			return false, ErrNotFound
		}
		*s = messages.Session{}
		return true, nil
	})
	return was, err
}

// awaitTurn settles a run that is parked until its turn: it adds the run to the order, whose first run has the turn. The park is
// already in the log, so either this call sees that the run has the turn, or the process that passes the turn on sees the park.
func (k *Controller) awaitTurn(ctx context.Context, run messages.Ref, h record.Head) error {
	if h.Waits != queue.ParkSession || h.Session == "" || k.Sessions == nil {
		return nil
	}
	if _, _, err := k.JoinSession(ctx, run, h.Session); err != nil {
		return err
	}
	return k.grantTurn(ctx, run.Tenant, h.Session)
}

// grantTurn wakes the first run of a session if it waits for its turn. A first run that has ended is taken out, for
// its owner may have been cut off between the end and that.
func (k *Controller) grantTurn(ctx context.Context, tenant, name string) error {
	for range maxConflicts + messages.MaxSessionRuns {
		s, _, err := k.Sessions.Session(ctx, tenant, name)
		if err != nil {
			return fmt.Errorf("read session %s: %w", name, err)
		}
		if len(s.Runs) == 0 {
			return nil
		}
		first := messages.Ref{Tenant: tenant, Run: s.Runs[0]}
		last, ok, err := k.Log.Last(ctx, first)
		switch {
		case err != nil:
			return fmt.Errorf("read %s: %w", first, err)
		case !ok || last.Head.Phase == record.PhaseFinished:
			if err := k.removeFromSession(ctx, first, name, last.Head.Turn); err != nil {
				return err
			}
			continue
		case last.Head.Phase == record.PhaseParked && last.Head.Waits == queue.ParkSession:
			last, err = k.append(ctx, first, last, &record.SessionGranted{Park: last.Head.ParkSeq})
			switch {
			case errors.Is(err, ErrConflict):
				continue
			case record.IsGone(err): // a sweep ends it
				return nil
			case err != nil:
				return err
			}
		}
		return k.wakeIfReady(ctx, first, &last)
	}
	return fmt.Errorf("give the turn in session %s: %w after %d tries", name, ErrConflict, maxConflicts)
}

// RebuildSession is the order of a session by the newest heads of all runs that name it, by run id. It leaves out those
// that are active and have had no turn: they join again by themselves.
func RebuildSession(heads map[string]record.Entry) messages.Session {
	var s messages.Session
	place := func(h record.Head) int { // in the order; 0: none
		switch {
		case h.Phase == record.PhaseFinished || h.Cancel && !h.Turn:
			return 0
		case h.Turn:
			return 1
		case h.Waits == queue.ParkSession && h.Phase == record.PhaseReady:
			return 2 // it was given the turn
		case h.Waits == queue.ParkSession:
			return 3
		default:
			return 0
		}
	}
	ids := slices.SortedFunc(maps.Keys(heads), func(a, b string) int {
		x, y := heads[a], heads[b]
		return cmp.Or(cmp.Compare(place(x.Head), place(y.Head)), cmp.Compare(x.Head.ParkSeq, y.Head.ParkSeq), cmp.Compare(x.Seq, y.Seq))
	})
	var ended []string
	for _, id := range ids {
		h := heads[id].Head
		switch {
		case place(h) > 0:
			s.Runs = append(s.Runs, id)
		case h.Phase == record.PhaseFinished && h.Turn:
			ended = append(ended, id)
		}
		if t := heads[id].Head.Time; t.After(s.Time) {
			s.Time = t
		}
	}
	slices.SortFunc(ended, func(a, b string) int { return cmp.Compare(heads[a].Seq, heads[b].Seq) })
	s.Ended = ended[max(0, len(ended)-messages.MaxSessionPast):]
	return s
}

// SessionsInMemory are Sessions in memory, to use with a Memory. The zero value is empty.
type SessionsInMemory struct {
	Log *Memory // to rebuild what Lose lost from; nil: it is lost

	mu       sync.Mutex
	revision uint64
	byName   map[[2]string]kept
}

type kept struct {
	messages.Session
	revision uint64
	lost     bool
}

var _ Sessions = (*SessionsInMemory)(nil)

// Session implements Sessions.
func (m *SessionsInMemory) Session(ctx context.Context, tenant, name string) (messages.Session, uint64, error) {
	m.mu.Lock()
	k := m.byName[[2]string{tenant, name}]
	m.mu.Unlock()
	if !k.lost || m.Log == nil {
		k.Runs, k.Ended = slices.Clone(k.Runs), slices.Clone(k.Ended)
		return k.Session, k.revision, nil
	}
	heads := map[string]record.Entry{}
	for _, run := range m.Log.Runs() {
		last, ok, err := m.Log.Last(ctx, run)
		if err != nil {
			return messages.Session{}, 0, err
		}
		if ok && run.Tenant == tenant && last.Head.Session == name {
			heads[run.Run] = last
		}
	}
	return RebuildSession(heads), k.revision, nil
}

// PutSession implements Sessions.
func (m *SessionsInMemory) PutSession(_ context.Context, tenant, name string, revision uint64, s messages.Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{tenant, name}
	if m.byName[key].revision != revision {
		return ErrConflict
	}
	if m.byName == nil {
		m.byName = map[[2]string]kept{}
	}
	m.revision++
	m.byName[key] = kept{s, m.revision, false}
	return nil
}

// Lose forgets a session, as a purge of what holds it does.
func (m *SessionsInMemory) Lose(tenant, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = map[[2]string]kept{}
	}
	m.revision++
	m.byName[[2]string{tenant, name}] = kept{revision: m.revision, lost: true}
}
