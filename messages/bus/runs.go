package bus

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// Runs yields every run that has a log, in pages from the stream's leader. A run that begins or is purged meanwhile
// may be missed. An error ends it.
func (b *Bus) Runs(ctx context.Context) iter.Seq2[messages.Ref, error] {
	return func(yield func(messages.Ref, error) bool) {
		for subject, err := range b.Subjects(ctx, StreamRuns, "runs.*.*.log") {
			if err != nil {
				yield(messages.Ref{}, fmt.Errorf("list runs: %w", err))
				return
			}
			t := strings.Split(subject, ".")
			if run := (messages.Ref{Tenant: t[1], Run: t[2]}); run.Check() == nil && !yield(run, nil) {
				return
			}
		}
	}
}

// Subjects yields those of a stream that hold a message, sorted within a page.
func (b *Bus) Subjects(ctx context.Context, stream, filter string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for offset := 0; ; {
			req := struct {
				Filter string `json:"subjects_filter"`
				Offset int    `json:"offset"`
			}{filter, offset}
			var info struct {
				Total int `json:"total"`
				State struct {
					Subjects map[string]uint64 `json:"subjects"`
				} `json:"state"`
			}
			if err := b.Call(ctx, "STREAM.INFO."+stream, req, &info); err != nil {
				yield("", err)
				return
			}
			for _, s := range slices.Sorted(maps.Keys(info.State.Subjects)) {
				if !yield(s, nil) {
					return
				}
			}
			offset += len(info.State.Subjects)
			if len(info.State.Subjects) == 0 || offset >= info.Total {
				return
			}
		}
	}
}
