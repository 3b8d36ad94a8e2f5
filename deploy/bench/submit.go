package main

import (
	"context"
	"errors"
)

// submit measures submits alone.
func (b *bench) submit(ctx context.Context) (err error) {
	on, err := b.env.Open(ctx, b.dir, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	took, err := on.Fill(ctx, b.plan.Runs, b.plan.Submitters)
	if err != nil {
		return err
	}
	b.report.submit(b.plan.Runs, b.plan.Submitters, took)
	return nil
}
