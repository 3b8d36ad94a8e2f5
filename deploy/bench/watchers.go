package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// watchRounds is how often an event is sent to all runs that are watched.
const watchRounds = 5

// crowd is many clients that watch runs over HTTP. No worker works these runs: the driver publishes their events.
type crowd struct {
	hall  *stage.Hall
	runs  []messages.Ref
	heads []record.Head
	out   []runlog.Outbox

	conns   []net.Conn
	readers sync.WaitGroup
	want    atomic.Int64 // how many are to see an event
	seen    [watchRounds + 8]atomic.Int64
	all     [watchRounds + 8]chan struct{} // closed when all have seen the event of a number
	ended   atomic.Int64
}

// watchers measures what clients cost that watch runs.
func (b *bench) watchers(ctx context.Context, h *stage.Hall) (err error) {
	c := &crowd{hall: h}
	for i := range c.all {
		c.all[i] = make(chan struct{})
	}
	n := min(b.plan.Watchers, measure.MayOpen())
	if err := c.begin(ctx, max(1, n/b.plan.WatchersPerRun)); err != nil {
		return err
	}
	before, err := h.Dispatcher.Usage()
	if err != nil {
		return err
	}
	defer func() {
		for _, conn := range c.conns {
			_ = conn.Close() // the readers end with it
		}
		c.readers.Wait()
	}()
	begun := time.Now()
	if err := c.join(ctx, n, false); err != nil {
		return err
	}
	if err := c.await(ctx, 2); err != nil { // run_queued and run_started, which are stored
		return err
	}
	joined := time.Since(begun)
	with, err := h.Dispatcher.Usage()
	if err != nil {
		return err
	}
	var rounds []time.Duration
	for round := range watchRounds {
		if round == watchRounds-1 { // the last round has some that read nothing, and lacks some that have vanished
			if err := c.join(ctx, n/50, true); err != nil {
				return err
			}
			c.vanish(n / 10)
		}
		begun := time.Now()
		if err := c.step(ctx, round+1); err != nil {
			return err
		}
		if err := c.await(ctx, 3+round); err != nil {
			return err
		}
		rounds = append(rounds, time.Since(begun))
	}
	if err := c.finish(ctx); err != nil {
		return err
	}
	after, err := c.settled(ctx, before.Goroutines)
	if err != nil {
		return err
	}
	b.report.watchers(n, len(c.runs), joined, rounds, before, with, after)
	return nil
}

// begin makes runs that are only queued, and publishes their first events.
func (c *crowd) begin(ctx context.Context, runs int) error {
	house, err := bus.Open(ctx, c.hall.Conn, bus.Config{})
	if err != nil {
		return err
	}
	logs := runlogs.New(house, runlogs.Config{})
	for range runs {
		t := stage.Task()
		t.ID = messages.NewID(time.Now())
		if _, err := c.hall.Client.Submit(ctx, t); err != nil {
			return err
		}
		run := dispatcher.Run(t.ID)
		c.runs, c.heads, c.out = append(c.runs, run), append(c.heads, record.Head{}), append(c.out, logs.Open(run))
	}
	return c.publish(ctx, 1, &record.Started{Task: stage.Task(), Agent: stage.Agents()[0]}, &record.Claimed{Claim: "c", Worker: "w", Ticket: 1})
}

// publish publishes the events of an entry with records, for each run.
func (c *crowd) publish(ctx context.Context, seq uint64, records ...record.Record) error {
	for i, run := range c.runs {
		h := record.Follow(c.heads[i], records...)
		h.Time = time.Now()
		c.heads[i] = h
		runlog.Publish(ctx, run, &record.Entry{Seq: seq, Head: h, Records: records}, c.out[i])
	}
	return c.flush(ctx)
}

func (c *crowd) flush(ctx context.Context) error {
	for _, out := range c.out {
		if err := out.Flush(ctx); err != nil {
			return fmt.Errorf("publish events: %w", err)
		}
	}
	return nil
}

func (c *crowd) step(ctx context.Context, n int) error {
	return c.publish(ctx, uint64(n)+1, &record.StepStarted{Step: n})
}

// join connects watchers; deaf ones read nothing.
func (c *crowd) join(ctx context.Context, n int, deaf bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(64)
	conns := make([]net.Conn, n)
	for i := range n {
		group.Go(func() (err error) {
			var d net.Dialer
			if conns[i], err = d.DialContext(ctx, "tcp", strings.TrimPrefix(c.hall.URL, "http://")); err != nil {
				return fmt.Errorf("connect a watcher: %w", err)
			}
			run := c.runs[i%len(c.runs)]
			_, err = fmt.Fprintf(conns[i], "GET /v1/tasks/%s/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", run.Run)
			return err
		})
	}
	err := group.Wait()
	for _, conn := range conns {
		if conn == nil {
			continue
		}
		c.conns = append(c.conns, conn)
		if err == nil && !deaf {
			c.readers.Go(func() { c.read(conn) })
		}
	}
	if !deaf {
		c.want.Add(int64(n))
	}
	return err
}

// read counts the events of one watcher until its stream ends.
func (c *crowd) read(conn net.Conn) {
	lines := bufio.NewReaderSize(conn, 1<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return
		}
		if string(line) == "0\r\n" { // the last chunk
			c.ended.Add(1)
			return
		}
		id, ok := strings.CutPrefix(string(line), "id: ")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(id))
		if err == nil && n < len(c.seen) && c.seen[n].Add(1) == c.want.Load() {
			close(c.all[n])
		}
	}
}

// vanish closes connections of watchers that read, without a word.
func (c *crowd) vanish(n int) {
	c.want.Add(int64(-n))
	for _, conn := range c.conns[:n] {
		_ = conn.Close() // that is the point
	}
}

// await waits until all have seen the event of a number.
func (c *crowd) await(ctx context.Context, n int) error {
	select {
	case <-c.all[n]:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d watchers have event %d: %w", c.seen[n].Load(), c.want.Load(), n, context.Cause(ctx))
	}
}

// finish ends all runs, and with them the streams.
func (c *crowd) finish(ctx context.Context) error {
	for i, run := range c.runs {
		end := &record.Finished{Result: messages.AgentResult{ID: run.Run, Success: true, Status: messages.StatusCompleted}}
		h := record.Follow(c.heads[i], end)
		h.Time = time.Now()
		events := record.Events(run, record.Entry{Seq: watchRounds + 2, Head: h, Records: []record.Record{end}})
		c.out[i].Publish(ctx, watchRounds+2, slices.Values(events[:1]))
		if err := c.out[i].Finish(ctx, events[1]); err != nil {
			return fmt.Errorf("publish events: %w", err)
		}
	}
	return nil
}

// settled waits until the streams have ended and the dispatcher is at rest again, and returns its measure.Usage then. Watchers
// that do not read are given up by their dispatcher only when it writes more than their connection holds; they leave.
func (c *crowd) settled(ctx context.Context, goroutines int) (u measure.Usage, err error) {
	for c.ended.Load() < c.want.Load() {
		if err := pause(ctx); err != nil {
			return u, fmt.Errorf("%d of %d streams have ended: %w", c.ended.Load(), c.want.Load(), err)
		}
	}
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	for tries := 0; ; tries++ {
		if u, err = c.hall.Dispatcher.Usage(); err != nil || u.Goroutines <= goroutines || tries == 100 {
			return u, err
		}
		if err := pause(ctx); err != nil {
			return u, err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
