package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// ways are the ways to submit a task, each with a function that submits one under an id.
func ways(h *stage.Hall, web *http.Client) []way {
	return []way{
		{"client", func(ctx context.Context, id string) error {
			t := stage.Task()
			t.ID = id
			_, err := h.Client.Submit(ctx, t)
			return err
		}},
		{"nats", func(ctx context.Context, id string) error {
			t := stage.Task()
			t.ID = id
			m, err := h.Conn.RequestWithContext(ctx, control.SubjectSubmit, t.Encode())
			if err == nil && m.Header.Get("Nats-Service-Error-Code") != "" {
				err = fmt.Errorf("submit: %s", m.Data)
			}
			return err
		}},
		{"http", func(ctx context.Context, id string) error {
			t := stage.Task()
			t.ID = id
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"/v1/tasks", bytes.NewReader(t.Encode()))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := web.Do(req)
			if err != nil {
				return err
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err == nil && resp.StatusCode != http.StatusAccepted {
				err = fmt.Errorf("submit: %s: %s", resp.Status, body)
			}
			return err
		}},
	}
}

type way struct {
	name   string
	submit func(ctx context.Context, id string) error
}

// admissionWork measures admission by the dispatcher: submits by each way, the time until the first event, and watchers.
func (b *bench) admissionWork(ctx context.Context) (err error) {
	if err := measure.RaiseFiles(); err != nil {
		return err
	}
	h, err := b.env.OpenHall(ctx, b.dir, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.plan.Submitters}}
	defer web.CloseIdleConnections()
	ways := ways(h, web)
	for _, way := range ways {
		took, err := stage.FillWith(ctx, b.plan.AdmissionSubmits, b.plan.Submitters, func(ctx context.Context) error {
			return way.submit(ctx, messages.NewID(time.Now()))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		b.report.admitted(way.name, b.plan.AdmissionSubmits, b.plan.Submitters, took)
	}
	if err := b.firstEvents(ctx, h, ways); err != nil { // and works what was submitted
		return err
	}
	return b.watchers(ctx, h)
}

// firstEvents measures the time from a submit to the run's first event at a subscriber, one run after the other.
func (b *bench) firstEvents(ctx context.Context, h *stage.Hall, ways []way) (err error) {
	work, err := measure.Spawn(ctx, stage.RoleWorker, h.Worker(b.plan.Slots), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Stop()) }()
	if err := waitForEnds(ctx, h, len(ways)*b.plan.AdmissionSubmits, func() error { return work.Start() }); err != nil {
		return err
	}
	sub, err := subscribe(ctx, h, messages.EventRunQueued)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	for _, way := range ways {
		first, err := measure.SeriesOf(ctx, b.plan.FirstEvents/5, b.plan.FirstEvents, func(ctx context.Context) error {
			id := messages.NewID(time.Now())
			if err := way.submit(ctx, id); err != nil {
				return err
			}
			for want := dispatcher.Run(id).EventSubject(messages.EventRunQueued); ; {
				m, err := sub.NextMsgWithContext(ctx)
				if err != nil {
					return fmt.Errorf("wait for the first event of a run: %w", err)
				}
				if m.Subject == want {
					break
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		b.report.firstEvent(way.name, first)
	}
	return nil
}

// waitForEnds begins something and waits until so many runs have ended.
func waitForEnds(ctx context.Context, h *stage.Hall, n int, begin func() error) error {
	sub, err := subscribe(ctx, h, messages.EventRunFinished)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	if err := begin(); err != nil {
		return err
	}
	ended := map[string]bool{}
	for len(ended) < n {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return fmt.Errorf("wait for the ends of runs: %w", err)
		}
		var e messages.Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		ended[e.Subject] = true
	}
	return nil
}

// subscribe returns once the server knows it: others publish on connections of their own.
func subscribe(ctx context.Context, h *stage.Hall, event string) (*nats.Subscription, error) {
	sub, err := h.Conn.SubscribeSync("events.*.*." + event)
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	if err := h.Conn.FlushWithContext(ctx); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	return sub, nil
}
