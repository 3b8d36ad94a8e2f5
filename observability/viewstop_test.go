package observability_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/observability"
)

// A view that is stopped while it looks neither warns nor counts a failure.
func TestViewIsStopped(t *testing.T) {
	b, _ := openBus(t)
	m := plain{observability.NewMetrics("")}
	var log bytes.Buffer
	v, err := observability.NewView(m.Metrics, b, retention.New(b, runlogs.New(b, runlogs.Config{})), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.Run(ctx); err != nil {
		t.Error(err)
	}
	if text := scrape(t, m); log.Len() > 0 || !strings.Contains(text, "fleet_look_failures_total 0\n") {
		t.Errorf("a stop is told as a failure:\n%s%s", log.String(), ours(text))
	}
}
