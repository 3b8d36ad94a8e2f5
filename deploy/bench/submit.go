package main

import (
	"context"
	"errors"
)

// submit measures submits alone.
func (b *bench) submit(ctx context.Context) (err error) {
	stage, err := b.openStage(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	took, err := stage.fill(ctx, b.plan.Runs, b.plan.Submitters)
	if err != nil {
		return err
	}
	b.report.submit(b.plan.Runs, b.plan.Submitters, took)
	return nil
}
