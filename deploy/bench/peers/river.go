//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	riverBatch = 1000                 // jobs that are inserted at once before the measurement
	riverFetch = 5 * time.Millisecond // between fetches of the worker; the default of 100 ms would bound it
	riverStop  = 30 * time.Second
)

// riverWorker works the units.
type riverWorker struct {
	river.WorkerDefaults[unit]

	count *counter
}

// Work implements river.Worker.
func (w *riverWorker) Work(ctx context.Context, job *river.Job[unit]) error {
	u := job.Args
	if u.Unit == w.count.w.Units {
		w.count.end()
		return nil
	}
	u.Unit++
	if _, err := river.ClientFromContext[pgx.Tx](ctx).Insert(ctx, u, nil); err != nil {
		return w.count.fail(fmt.Errorf("insert a job: %w", err))
	}
	return nil
}

// runRiver works all runs with River on a fresh PostgreSQL whose commits do not wait for the disk.
func runRiver(ctx context.Context, dir string, w workload) (r result, err error) {
	pg, err := startPostgres(ctx, dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, pg.stop()) }()
	pool, err := pgxpool.New(ctx, pg.url)
	if err != nil {
		return r, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	quiet := slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return r, fmt.Errorf("make tables: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return r, fmt.Errorf("make tables: %w", err)
	}
	c := newCounter(w)
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{count: c})
	client, err := river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: w.Slots}}, Workers: workers, Logger: quiet,
		FetchCooldown: riverFetch, FetchPollInterval: riverFetch,
	})
	if err != nil {
		return r, fmt.Errorf("make client: %w", err)
	}
	for n := 0; n < w.all(); n += riverBatch {
		var batch []river.InsertManyParams
		for i := n; i < min(n+riverBatch, w.all()); i++ {
			batch = append(batch, river.InsertManyParams{Args: unit{Run: i, Unit: 1, Text: text()}})
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return r, fmt.Errorf("insert jobs: %w", err)
		}
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), riverStop)
		defer cancel()
		err = errors.Join(err, client.StopAndCancel(stopping))
	}()
	return c.measure(ctx, pg.cmd.Process.Pid, func() error { return client.Start(ctx) })
}
