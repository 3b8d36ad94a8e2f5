package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/control"
)

// questions are what people ask of many runs, and of one.
func (g *grown) questions(ctx context.Context, s *growthSize) error {
	runs := g.hall.Client.Runs()
	list, err := runs.List(ctx, dispatcher.RunFilter{Limit: 1})
	if err != nil {
		return err
	}
	if len(list.Runs) == 0 {
		return errors.New("the run index has no run")
	}
	g.last = dispatcher.Run(list.Runs[0].ID)
	for _, q := range []struct {
		name string
		took *float64
		cpu  *float64 // of the dispatcher; nil: it is not told
		ask  func() error
	}{
		{"list", &s.List, nil, func() error {
			l, err := runs.List(ctx, dispatcher.RunFilter{Limit: growthList})
			if err == nil && len(l.Runs) != min(growthList, g.runs) {
				err = fmt.Errorf("%d runs", len(l.Runs))
			}
			return err
		}},
		{"search", &s.Search, &s.SearchCPU, func() error {
			l, err := runs.List(ctx, dispatcher.RunFilter{Limit: growthList, Search: "quoth the raven"})
			if err == nil && len(l.Runs) > 0 {
				err = errors.New("found what no run has")
			}
			return err
		}},
		{"stats", &s.Stats, &s.StatsCPU, func() error {
			_, err := runs.Stats(ctx, dispatcher.RunFilter{}, control.StatsByAgent)
			return err
		}},
		{"status", &s.Status, nil, func() error {
			_, err := g.hall.Client.Status(ctx, g.last)
			return err
		}},
		{"log", &s.Log, nil, func() error {
			for _, err := range runs.Log(ctx, g.last) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		var took []time.Duration
		_, cpu, err := g.spent(func() (err error) {
			took, err = measure.SeriesOf(ctx, 0, growthAsks, func(context.Context) error {
				err := q.ask()
				if errors.Is(err, dispatcher.ErrNoIndex) { // it has one, which did not answer in time
					s.Failed++
					return nil
				}
				return err
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		*q.took = measure.Millis(measure.Percentile(took, 0.5))
		if q.cpu != nil {
			*q.cpu = measure.Rounded(cpu[1]*1000/growthAsks, 1)
		}
	}
	return nil
}
