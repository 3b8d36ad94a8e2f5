// Package traces exports what agents do as OpenTelemetry traces, over OTLP. Make an [Exporter] with [Open] and call
// [Exporter.Run].
//
// Every run is a trace, or a part of the one that its submitter began. Spans are made of events alone, when the event
// that ends one is stored, so the shape of a trace does not depend on which worker wrote it or how often the run changed hands.
// Ids are derived from the names of run, step and event, so a span that is exported twice is one span.
//
// All exporters share one consumer on the stream of events. An event is acknowledged when the collector has taken its spans: at
// least once. A collector that is slow or down does not affect runs; events are redelivered for as long as the stream keeps them. Texts, arguments and results of tools are never exported.
package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/tracing"
	"github.com/longshore-run/longshore/messages/strict"
)

// errMalformed means that an event is not what its name says. It becomes no span.
var errMalformed = errors.New("not what its name says")

// Config of an Exporter.
type Config struct {
	Bus       *bus.Bus
	Collector Collector
	Service   string            // default "longshore"
	Version   string            // of the program
	Resource  map[string]string // more attributes of who exports
	Log       *slog.Logger      // default: discards
}

// Exporter exports the spans of all runs.
type Exporter struct {
	cfg      Config
	events   *tracing.Consumer
	client   *client
	resource attributes
}

// Open makes the consumer, or finds the one that is there: events from now on, or from where it was left, become spans.
func Open(ctx context.Context, cfg Config) (*Exporter, error) {
	if cfg.Service == "" {
		cfg.Service = "longshore"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	to, err := newClient(cfg.Collector, cfg.Version)
	if err != nil {
		return nil, err
	}
	events, err := tracing.New(cfg.Bus).Open(ctx, ending()...)
	if err != nil {
		return nil, err
	}
	x := &Exporter{cfg: cfg, events: events, client: to}
	x.resource.text(attrService, cfg.Service)
	x.resource.text(attrServiceVersion, cfg.Version)
	for key, value := range cfg.Resource {
		x.resource.text(key, value)
	}
	return x, nil
}

// Run exports until ctx ends. What is in hand then comes again.
func (x *Exporter) Run(ctx context.Context) error {
	defer x.client.close()
	x.events.Run(ctx, x.export)
	return nil
}

// export sends the spans of some events to the collector. It returns the places of events that must come again.
func (x *Exporter) export(ctx context.Context, events []tracing.Event) (again []int, err error) {
	h := newHistory(x.cfg.Bus)
	var spans []*tracepb.Span
	for i := range events {
		of, err := spansOf(ctx, &events[i], h)
		switch {
		case err == nil:
			spans = append(spans, of...)
		case errors.Is(err, errMalformed):
			x.cfg.Bus.Foreign()
			x.cfg.Log.WarnContext(ctx, "an event becomes no span", "err", strict.Clip(err.Error(), 512))
		case errors.Is(err, errNotYet):
			again = append(again, i)
		default:
			return nil, err
		}
	}
	if len(spans) == 0 {
		return again, nil
	}
	partial, err := x.client.send(ctx, x.request(spans))
	if err != nil {
		return nil, fmt.Errorf("send %d spans to the collector: %w", len(spans), err)
	}
	if partial {
		x.cfg.Log.WarnContext(ctx, "the collector threw spans away", "sent", len(spans))
	}
	return again, nil
}

// request is what OTLP calls an ExportTraceServiceRequest: on the wire it is the same.
func (x *Exporter) request(spans []*tracepb.Span) *tracepb.TracesData {
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: resourceOf(x.resource),
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: scopeOf(x.cfg.Version), Spans: spans,
		}},
	}}}
}
