package fleet

import (
	"context"
	"log/slog"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/observability/traces"
)

// maxCertificates bounds a file of certificates, in bytes.
const maxCertificates = 1 << 20

// exportTraces prepares the export of traces and returns what does it until ctx ends; without a collector it does
// nothing.
func exportTraces(ctx context.Context, s settings.Traces, b *bus.Bus, version string, log *slog.Logger) (run func(context.Context) error, err error) {
	to := traces.Collector{URL: s.CollectorURL(), Headers: s.CollectorHeaders()}
	if to.URL == "" {
		return func(context.Context) error { return nil }, nil
	}
	if s.OTLPCA != "" {
		if to.CA, err = document.Read(s.OTLPCA, maxCertificates); err != nil {
			return nil, settings.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %v", err)
		}
	}
	x, err := traces.Open(ctx, traces.Config{
		Bus: b, Collector: to, Service: s.OTelService, Version: version, Resource: s.Resource(), Log: log,
	})
	if err != nil {
		return nil, err
	}
	return x.Run, nil
}
