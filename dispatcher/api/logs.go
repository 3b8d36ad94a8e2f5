package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/logentry"
)

// defaultLogEntries are listed by default.
const defaultLogEntries = 200

// eventLog is the type of a server-sent event that brings a log entry.
const eventLog = "log"

func getLogsOperation() operation {
	return operation{
		method: "GET", path: "/v1/tasks/{id}/logs", id: "getLogs", needs: control.Read, tag: "tasks", summary: "Get what processes logged about a run",
		failures: failuresOf(control.SubjectStatus),
		text: "Log entries, oldest first: the newest " + strconv.Itoa(logentry.MaxLogEntries) + " that are kept. With follow=true they come as " +
			"server-sent events of type log, first those that are stored and then new ones, until the run has ended; the id of an " +
			"event is the entry's seq. Entries are for people: some may be lost, and the outcome of the run never depends on them.",
		headers: []control.Parameter{{Name: "Last-Event-ID", Text: "As after.", Kind: "integer"}},
		query: []control.Parameter{
			{Name: "level", Text: "Only entries of this level and above: debug, info, warn or error.", Example: "warn"},
			{Name: "after", Text: "Continue after this entry: `next` of the previous page, or a seq.", Kind: "integer"},
			{Name: "limit", Text: fmt.Sprintf("Maximum number of entries: up to %d, %d by default; not with follow.", logentry.MaxLogEntries, defaultLogEntries), Kind: "integer"},
			{Name: "follow", Text: "Follow the run, as text/event-stream.", Kind: "boolean"},
		},
		reply: logentry.LogEntryList{}, stream: getLogs,
	}
}

// getLogs answers with a page, or with a stream.
func getLogs(w http.ResponseWriter, q *query) error {
	run, err := q.run()
	if err != nil {
		return err
	}
	o := dispatcher.LogOptions{Level: logentry.LogLevel(q.text("level"))}
	if o.Level != "" {
		if err := o.Level.Check(); err != nil {
			return err
		}
	}
	if o.After, err = q.after(); err != nil {
		return err
	}
	if o.Follow, err = q.flag("follow"); err != nil {
		return err
	}
	limit := defaultLogEntries
	if q.text("limit") != "" {
		if limit, err = q.limit(logentry.MaxLogEntries); err != nil {
			return err
		}
		if o.Follow {
			return &messages.FieldError{Field: "limit", Reason: "does not go with follow"}
		}
	}
	lookup, cancel := context.WithTimeout(q.r.Context(), requestTimeout)
	defer cancel()
	if _, err := q.api.cfg.Client.Status(lookup, run); err != nil { // who mistyped an id should be told
		return err
	}
	if o.Follow {
		return followLogs(w, q, run, o)
	}
	list, err := q.api.logPage(lookup, run, o, limit)
	if err != nil {
		return err
	}
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(requestTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil // the connection is gone
	}
	q.api.write(q.r.Context(), w, q, list)
	return nil
}

// logPageBytes is after how much of it a page ends.
const logPageBytes = 4 << 20

func (a *API) logPage(ctx context.Context, run messages.Ref, o dispatcher.LogOptions, limit int) (*logentry.LogEntryList, error) {
	list, size := &logentry.LogEntryList{Entries: []logentry.StoredLogEntry{}}, 0
	for e, err := range a.cfg.Client.Runs().Logs(ctx, run, o) {
		if err != nil {
			return nil, fmt.Errorf("read log entries: %w", err)
		}
		if n := len(list.Entries); n == limit || size > logPageBytes {
			list.Next = list.Entries[n-1].Seq
			break
		}
		data, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode log entry: %w", err)
		}
		size += len(data)
		list.Entries = append(list.Entries, e)
	}
	return list, nil
}

// followLogs streams entries until the run has ended or the client has gone.
func followLogs(w http.ResponseWriter, q *query, run messages.Ref, o dispatcher.LogOptions) error {
	ctx, stop := q.api.untilDrain(q.r.Context())
	s := startStream(w, q.api.cfg.KeepAlive)
	defer s.quiet.Stop()
	entries, ended := make(chan logentry.StoredLogEntry), make(chan error, 1)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	reading.Go(func() { ended <- q.api.forwardLogs(ctx, run, o, entries) })
	carry(ctx, s, entries, nil, ended, func(e logentry.StoredLogEntry) error {
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode log entry: %w", err)
		}
		return s.event(strconv.FormatUint(e.Seq, 10), eventLog, data)
	}, nil)
	return nil
}

func (a *API) forwardLogs(ctx context.Context, run messages.Ref, o dispatcher.LogOptions, to chan<- logentry.StoredLogEntry) error {
	for e, err := range a.cfg.Client.Runs().Logs(ctx, run, o) {
		if err != nil {
			return err
		}
		select {
		case to <- e:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
