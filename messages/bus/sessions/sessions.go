package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	sessionPrefix = "$KV." + bus.BucketSessions + "."
	// The mark says that the bucket has every session there is. It is gone when the bucket was lost.
	sessionMark = sessionPrefix + "complete"
)

// SessionLimit is how many sessions a list holds at most.
const SessionLimit = 1000

var _ runlog.Sessions = (*Store)(nil)

func sessionSubject(tenant, name string) (string, error) {
	if err := (messages.Ref{Tenant: tenant, Run: name}).Check(); err != nil {
		return "", &messages.FieldError{Field: "session", Reason: "tenant and name must each be 1 to 64 of A-Z a-z 0-9 _ -"}
	}
	return sessionPrefix + tenant + "." + name, nil
}

// Session implements runlog.Sessions. A key that was deleted, and every key when the bucket is new or was emptied, is
// rebuilt from the heads of the logs, which takes a request for each run.
func (se *Store) Session(ctx context.Context, tenant, name string) (messages.Session, uint64, error) {
	var s messages.Session
	subject, err := sessionSubject(tenant, name)
	if err != nil {
		return s, 0, err
	}
	m, ok, err := se.bus.Stream(bus.StreamSessions).Get(ctx, bus.Lookup{Last: subject})
	if err != nil {
		return s, 0, fmt.Errorf("read session %s: %w", name, err)
	}
	if !ok {
		var whole bool
		if _, whole, err = se.bus.Stream(bus.StreamSessions).Get(ctx, bus.Lookup{Last: sessionMark}); err != nil {
			return s, 0, fmt.Errorf("read sessions: %w", err)
		}
		if whole {
			return s, 0, nil
		}
		if err := se.rebuildSessions(ctx); err != nil {
			return s, 0, fmt.Errorf("rebuild sessions: %w", err)
		}
		if m, ok, err = se.bus.Stream(bus.StreamSessions).Get(ctx, bus.Lookup{Last: subject}); err != nil || !ok {
			return s, 0, err
		}
	}
	if bus.IsRemoved(m) {
		found, err := se.findSessions(ctx, "runs."+tenant+".*.log", name)
		return runlog.RebuildSession(found[[2]string{tenant, name}]), m.Seq, err
	}
	if err := strict.Decode(m.Data, &s); err != nil {
		return s, 0, fmt.Errorf("session %s is unreadable: %w", name, err)
	}
	return s, m.Seq, nil
}

// PutSession implements runlog.Sessions.
func (se *Store) PutSession(ctx context.Context, tenant, name string, revision uint64, s messages.Session) error {
	subject, err := sessionSubject(tenant, name)
	if err != nil {
		return err
	}
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode session: %w", err)
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: body}
	bus.Expect(m, revision)
	_, err = se.bus.Store(ctx, m)
	if bus.Refused(err, bus.CodeWrongLast) {
		return runlog.ErrConflict // or stored, and the answer was lost: the next attempt sees it
	}
	return err
}

// List are the sessions of a tenant by name, at most SessionLimit; more tells that there are others.
func (se *Store) List(ctx context.Context, tenant string) (list []control.SessionStatus, more bool, err error) {
	if !strict.ValidToken(tenant) {
		return nil, false, &messages.FieldError{Field: "tenant", Reason: "must be 1 to 64 of A-Z a-z 0-9 _ -"}
	}
	for subject, err := range se.bus.Stream(bus.StreamSessions).Subjects(ctx, sessionPrefix+tenant+".*") {
		if err != nil {
			return nil, false, fmt.Errorf("list sessions: %w", err)
		}
		if len(list) == SessionLimit {
			return list, true, nil
		}
		name := subject[strings.LastIndexByte(subject, '.')+1:]
		s, _, err := se.Session(ctx, tenant, name)
		if err != nil {
			return nil, false, err
		}
		if !s.Empty() {
			st := control.StatusOf(&s, tenant, name)
			st.Waiting, st.Ended = nil, nil
			list = append(list, st)
		}
	}
	return list, false, nil
}

// rebuildSessions stores every session that the logs know of and the bucket does not, and then the mark.
func (se *Store) rebuildSessions(ctx context.Context) error {
	found, err := se.findSessions(ctx, "runs.*.*.log", "")
	if err != nil {
		return err
	}
	for key, heads := range found {
		err := se.PutSession(ctx, key[0], key[1], 0, runlog.RebuildSession(heads))
		if err != nil && !errors.Is(err, runlog.ErrConflict) {
			return err
		}
	}
	return se.bus.StoreFirst(ctx, &nats.Msg{Subject: sessionMark, Header: nats.Header{}, Data: []byte(`"` + time.Now().UTC().Format(time.RFC3339) + `"`)})
}

// findSessions are the newest heads of all runs that name a session, by tenant and session. With a name it is that one
// alone.
func (se *Store) findSessions(ctx context.Context, filter, name string) (map[[2]string]map[string]record.Entry, error) {
	found := map[[2]string]map[string]record.Entry{}
	logs := se.bus.Partitions(bus.StreamRuns)
	for run, err := range logs.Runs(ctx, filter) {
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		last, ok, err := se.log.Last(ctx, run)
		if err != nil && !errors.Is(err, record.ErrNewerVersion) {
			return nil, err
		}
		s := last.Head.Session
		if !ok || !strict.ValidToken(s) || name != "" && s != name {
			continue
		}
		key := [2]string{run.Tenant, s}
		if found[key] == nil {
			found[key] = map[string]record.Entry{}
		}
		if logs.Divided() {
			if last, err = se.dated(ctx, run, last); err != nil {
				return nil, err
			}
		}
		found[key][run.Run] = last
	}
	return found, nil
}

// dated puts times in place of the sequences of a head, in nanoseconds: those of two streams tell no order. The clocks of servers may differ,
// and with them the order of runs that parked within that difference.
func (se *Store) dated(ctx context.Context, run messages.Ref, e record.Entry) (record.Entry, error) {
	for _, seq := range []*uint64{&e.Seq, &e.Head.ParkSeq} {
		if *seq == 0 {
			continue
		}
		m, ok, err := se.bus.Partitions(bus.StreamRuns).Of(run).Get(ctx, bus.Lookup{Seq: *seq})
		if err != nil {
			return e, fmt.Errorf("look when entry %d of %s was stored: %w", *seq, run, err)
		}
		if ok { // else it was purged a moment ago
			*seq = uint64(m.Time.UnixNano())
		}
	}
	return e, nil
}
