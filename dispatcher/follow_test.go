package dispatcher_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// A follower sees the events of its tenants, and no others.
func TestFollow(t *testing.T) {
	y := newYard(t)
	bound, err := dispatcher.NewTenant(t.Context(), y.nc, "acme")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		client *dispatcher.Client
		tenant string
		sees   string // the tenants
	}{
		"all":      {y.client, "", "acme other "},
		"one":      {y.client, "acme", strings.Repeat("acme ", 2)},
		"its own":  {bound, "", strings.Repeat("acme ", 2)},
		"its own ": {bound, "acme", strings.Repeat("acme ", 2)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			announced := make(chan struct{})
			go func() { // until the follower has seen enough: it may not follow yet
				defer close(announced)
				tick := time.NewTicker(10 * time.Millisecond)
				defer tick.Stop()
				for i := 0; ; i++ {
					for _, tenant := range []string{"acme", "other"} {
						if err := events.New(y.bus).AnnounceTo(ctx, tenant, "e"+strconv.Itoa(i), nil); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
					}
				}
			}()
			seen, begun := "", false
			for e, err := range tt.client.Follow(ctx, tt.tenant) {
				if err != nil {
					t.Error(err)
					break
				}
				if begun = begun || e.Ref().Tenant == "acme"; begun {
					seen += e.Ref().Tenant + " "
				}
				if len(seen) >= len(tt.sees) {
					break
				}
			}
			cancel()
			<-announced
			if seen != tt.sees {
				t.Errorf("%q, want %q", seen, tt.sees)
			}
		})
	}
	for _, err := range y.client.Follow(t.Context(), "a.b") {
		if _, is := errors.AsType[*messages.FieldError](err); !is {
			t.Error(err)
		}
	}
}
