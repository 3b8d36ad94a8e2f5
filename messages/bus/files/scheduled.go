package files

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages/bus"
)

// scheduled is what a schedule says of uploads.
type scheduled struct {
	Task struct {
		Files []struct {
			Hash string `json:"hash"`
		} `json:"files"`
		Manifest string `json:"manifest"`
	} `json:"task"`
}

// schedules reads what the tasks of schedules name: a schedule keeps that for as long as it exists, without a reference of its own.
func (c *collection) schedules(ctx context.Context) error {
	const prefix = "$KV." + bus.BucketSchedules + "."
	var subjects []string
	for subject, err := range c.bus.Stream(bus.StreamSchedules).Subjects(ctx, prefix+"*.*") {
		if err != nil {
			return fmt.Errorf("look for schedules: %w", err)
		}
		if tenant, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix), "."); c.tenants[tenant] != nil {
			subjects = append(subjects, subject)
		}
	}
	found := make([]scheduled, len(subjects))
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, subject := range subjects {
		group.Go(func() error {
			m, ok, err := c.bus.Stream(bus.StreamSchedules).Get(each, bus.Lookup{Last: subject})
			if err == nil && ok && !bus.IsRemoved(m) {
				err = json.Unmarshal(m.Data, &found[i]) // a newer program may have more fields
			}
			if err != nil {
				err = fmt.Errorf("read schedule %s: %w", subject, err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, s := range found {
		tenant, _, _ := strings.Cut(strings.TrimPrefix(subjects[i], prefix), ".")
		t := c.tenants[tenant]
		if s.Task.Manifest != "" {
			t.refs[s.Task.Manifest] = true
		}
		for _, f := range s.Task.Files {
			if f.Hash != "" {
				t.named[f.Hash] = true
			}
		}
	}
	return nil
}
