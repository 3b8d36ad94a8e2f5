package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	// How long workers have to answer. They are in the same network and have nothing to look up, but their machines may be busy.
	// Without any worker, the server says so at once.
	workersWait = 2 * time.Second
	// How long to wait for further answers after the last one.
	workersQuiet = 150 * time.Millisecond
	maxWorkers   = 10_000
)

// ErrNoWorker means that the worker is gone, or never was.
var ErrNoWorker = errors.New("no such worker")

// Serve answers for a worker, until ctx ends: what it is doing, and, by its id, a request to drain, of which drain
// is told before it is answered. A status with details has the tools in full.
func (fl *Fleet) Serve(ctx context.Context, id string, status func(details bool) messages.WorkerStatus, drain func()) error {
	if !strict.ValidToken(id) {
		return &messages.FieldError{Field: "id", Reason: "must be a token"}
	}
	answer := func(m *nats.Msg) {
		body, err := json.Marshal(status(m.Header.Get(messages.HeaderDetails) != ""))
		if err == nil {
			err = m.Respond(body)
		}
		if err != nil {
			fl.bus.Log().WarnContext(ctx, "answer for the worker", "err", err)
		}
	}
	subjects := map[string]nats.MsgHandler{
		messages.StatusOfWorkers:  answer,
		messages.DrainPrefix + id: func(m *nats.Msg) { drain(); answer(m) },
	}
	for subject, handle := range subjects {
		sub, err := fl.bus.Conn().Subscribe(subject, func(m *nats.Msg) {
			if m.Subject != subject || len(m.Data) > 0 || bus.CheckRequest(m) != nil { // a server's answer, which a client can have sent anywhere
				return
			}
			handle(m)
		})
		if err != nil {
			return fmt.Errorf("answer on %s: %w", subject, err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	<-ctx.Done()
	return nil
}

// Workers lists the workers by name. A worker that does not answer within two seconds, or within 150 ms of
// the last answer, is left out; so is an invalid answer.
func (fl *Fleet) Workers(ctx context.Context) ([]messages.WorkerStatus, error) {
	return fl.workers(ctx, nil)
}

// Detailed lists the workers like Workers, with their tools in full, which workers of earlier versions do not tell.
func (fl *Fleet) Detailed(ctx context.Context) ([]messages.WorkerStatus, error) {
	return fl.workers(ctx, nats.Header{messages.HeaderDetails: {"tools"}})
}

func (fl *Fleet) workers(ctx context.Context, header nats.Header) ([]messages.WorkerStatus, error) {
	in, err := fl.askWorkers(messages.StatusOfWorkers, maxWorkers, header)
	if err != nil {
		return nil, fmt.Errorf("ask the workers: %w", err)
	}
	defer in.Close()
	all, end := []messages.WorkerStatus{}, time.Now().Add(workersWait)
	for wait := workersWait; len(all) < maxWorkers && wait > 0; wait = min(workersQuiet, time.Until(end)) {
		m, err := in.Next(ctx, wait)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("ask the workers: %w", context.Cause(ctx))
		}
		if err != nil || m.Header.Get(bus.StatusHeader) == bus.StatusNoResponders {
			break // no more answers
		}
		w, err := decodeWorker(m.Data)
		if err != nil {
			fl.bus.Log().WarnContext(ctx, "an answer of a worker is left out", "err", err)
			continue
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b messages.WorkerStatus) int {
		return strings.Compare(a.Name+"\x00"+a.ID, b.Name+"\x00"+b.ID)
	})
	return all, nil
}

// Drain asks the worker with an id to drain. ErrNoWorker: no worker answers to it.
func (fl *Fleet) Drain(ctx context.Context, id string) (messages.WorkerStatus, error) {
	if !strict.ValidToken(id) {
		return messages.WorkerStatus{}, &messages.FieldError{Field: "worker", Reason: "must be a token"}
	}
	in, err := fl.askWorkers(messages.DrainPrefix+id, bus.AnswerRoom, nil)
	if err != nil {
		return messages.WorkerStatus{}, fmt.Errorf("ask worker %s to drain: %w", id, err)
	}
	defer in.Close()
	m, err := in.Next(ctx, fl.bus.Answer())
	switch {
	case err != nil:
		return messages.WorkerStatus{}, fmt.Errorf("ask worker %s to drain: %w", id, err)
	case m.Header.Get(bus.StatusHeader) == bus.StatusNoResponders:
		return messages.WorkerStatus{}, ErrNoWorker
	}
	return decodeWorker(m.Data)
}

// askWorkers sends a request to workers and returns the inbox of their answers. Its subject ends in a word of its own: that
// is where alone the user of the workers may publish in the dispatchers' inboxes.
func (fl *Fleet) askWorkers(subject string, room int, header nats.Header) (*bus.Inbox, error) {
	in, err := bus.OpenInboxAt(fl.bus.Conn(), fl.bus.Conn().NewInbox()+".workers", room)
	if err != nil {
		return nil, err
	}
	if err := fl.bus.Conn().PublishMsg(&nats.Msg{Subject: subject, Reply: in.Sub.Subject, Header: header}); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}
