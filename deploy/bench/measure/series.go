package measure

import (
	"context"
	"slices"
	"time"
)

// SeriesOf is how long something takes, again and again, sorted; what comes first does not count.
func SeriesOf(ctx context.Context, warmup, n int, once func(context.Context) error) ([]time.Duration, error) {
	var out []time.Duration
	for i := range warmup + n {
		begun := time.Now()
		if err := once(ctx); err != nil {
			return nil, err
		}
		if i >= warmup {
			out = append(out, time.Since(begun))
		}
	}
	slices.Sort(out)
	return out, nil
}

// Percentile is the value below which the part p of a sorted series is.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}
