package longterm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
)

func TestRetainedConformance(t *testing.T) {
	t.Parallel()
	longtermtest.Run(t, func(_ *testing.T, o longtermtest.Options) longterm.Store {
		return longterm.Retained(memstore.New(memstore.Config{Limits: o.Limits, Now: o.Now}), func(longterm.Place) time.Duration { return 0 })
	})
}

// A rule shortens how long an item is held, and lengthens nothing; the time counts from when the item was created, and never from the future.
func TestRetained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := longterm.Retained(memstore.New(memstore.Config{}), func(at longterm.Place) time.Duration {
			return map[string]time.Duration{"short": time.Hour}[at.Collection]
		})
		now := time.Now().UTC()
		for name, tc := range map[string]struct {
			collection             string
			created, expires, want time.Duration // from now
		}{
			"none":       {"long", 0, 0, 0},
			"only asked": {"long", 0, 2 * time.Hour, 2 * time.Hour},
			"only rule":  {"short", 0, 0, time.Hour},
			"asked less": {"short", 0, time.Minute, time.Minute},
			"asked more": {"short", 0, 2 * time.Hour, time.Hour},
			"older":      {"short", -30 * time.Minute, 0, 30 * time.Minute},
			"too old":    {"short", -time.Hour, 0, -1},
			"future":     {"short", 5 * time.Hour, 0, time.Hour},
		} {
			it := longterm.Item{ID: "a", Text: "x"}
			if tc.created != 0 {
				it.Created = now.Add(tc.created)
			}
			if tc.expires != 0 {
				it.Expires = now.Add(tc.expires)
			}
			given := []longterm.Item{it}
			if err := s.Write(t.Context(), longtermtest.Place(tc.collection), given); err != nil {
				t.Fatal(name, err)
			}
			if !given[0].Expires.Equal(it.Expires) {
				t.Errorf("%s: the caller's item was changed", name)
			}
			got, err := s.Read(t.Context(), longtermtest.Place(tc.collection), []string{"a"})
			switch {
			case err != nil || len(got) > 1 || len(got) == 0 && tc.want >= 0:
				t.Errorf("%s: %+v, %v", name, got, err)
			case tc.want < 0 && len(got) > 0:
				t.Errorf("%s: is still read: %+v", name, got)
			case tc.want == 0 && !got[0].Expires.IsZero(), tc.want > 0 && !got[0].Expires.Equal(now.Add(tc.want)):
				t.Errorf("%s: expires %v, want %v from now", name, got[0].Expires.Sub(now), tc.want)
			}
		}
		time.Sleep(time.Hour)
		if n, err := s.Sweep(t.Context(), 100); err != nil || n != 1 {
			t.Errorf("%d were removed, %v", n, err)
		}
	})
}
