package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
)

// hall is a stage whose dispatcher is a process of its own, with its HTTP API.
type hall struct {
	*stage

	dispatcher *process
	url        string
}

func (b *bench) openHall(ctx context.Context) (_ *hall, err error) {
	h := &hall{stage: &stage{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	s := h.stage
	if s.dir, err = os.MkdirTemp(b.dir, "hall-"); err != nil {
		return nil, fmt.Errorf("make temporary folder: %w", err)
	}
	if s.servers, err = b.spawn(ctx, roleServers, serversConfig{Dir: filepath.Join(s.dir, "servers")}, &s.ready); err != nil {
		return nil, err
	}
	var ready dispatcherReady
	if h.dispatcher, err = b.spawn(ctx, roleDispatcher, dispatcherConfig{s.ready.NATSURL}, &ready); err != nil {
		return nil, err
	}
	h.url = "http://" + ready.Addr
	if s.nc, err = bus.Connect(ctx, bus.ConnConfig{URL: s.ready.NATSURL, Name: driverName, Log: b.log}); err != nil {
		return nil, err
	}
	if s.client, err = dispatcher.New(ctx, s.nc); err != nil {
		return nil, err
	}
	_, err = s.client.Agents().Apply(ctx, agents()[0], "", nil)
	return h, err
}

func (h *hall) close() error {
	var errs []error
	if h.dispatcher != nil {
		errs = append(errs, h.dispatcher.stop())
	}
	return errors.Join(append(errs, h.stage.close())...)
}

// ways are the ways to submit a task, each with a function that submits one under an id.
func (h *hall) ways(web *http.Client) []way {
	return []way{
		{"client", func(ctx context.Context, id string) error {
			t := task()
			t.ID = id
			_, err := h.client.Submit(ctx, t)
			return err
		}},
		{"nats", func(ctx context.Context, id string) error {
			t := task()
			t.ID = id
			m, err := h.nc.RequestWithContext(ctx, control.SubjectSubmit, t.Encode())
			if err == nil && m.Header.Get("Nats-Service-Error-Code") != "" {
				err = fmt.Errorf("submit: %s", m.Data)
			}
			return err
		}},
		{"http", func(ctx context.Context, id string) error {
			t := task()
			t.ID = id
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/v1/tasks", bytes.NewReader(t.Encode()))
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
	if err := raiseFiles(); err != nil {
		return err
	}
	h, err := b.openHall(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.plan.Submitters}}
	defer web.CloseIdleConnections()
	ways := h.ways(web)
	for _, way := range ways {
		took, err := fillWith(ctx, b.plan.AdmissionSubmits, b.plan.Submitters, func(ctx context.Context) error {
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
func (b *bench) firstEvents(ctx context.Context, h *hall, ways []way) (err error) {
	work, err := b.spawn(ctx, roleWorker, h.worker(b.plan.Slots), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.stop()) }()
	if err := h.waitForEnds(ctx, len(ways)*b.plan.AdmissionSubmits, func() error { return work.ask(opStart, nil, nil) }); err != nil {
		return err
	}
	sub, err := h.subscribe(ctx, messages.EventRunQueued)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	for _, way := range ways {
		first, err := seriesOf(ctx, b.plan.FirstEvents/5, b.plan.FirstEvents, func(ctx context.Context) error {
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
func (h *hall) waitForEnds(ctx context.Context, n int, begin func() error) error {
	sub, err := h.subscribe(ctx, messages.EventRunFinished)
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
func (h *hall) subscribe(ctx context.Context, event string) (*nats.Subscription, error) {
	sub, err := h.nc.SubscribeSync("events.*.*." + event)
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	if err := h.nc.FlushWithContext(ctx); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	return sub, nil
}
