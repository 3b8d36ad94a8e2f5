package traces

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	sendTimeout = 10 * time.Second // of one request, as OTLP's default is
	maxAnswer   = 64 << 10         // what is read of an answer, so that its connection can be used again
	maxAfter    = 20 * time.Second // the pause that a collector may ask for; beyond it the stream keeps the events
	contentType = "application/x-protobuf"
	emptyAnswer = 2 // bytes of an answer with an empty partial_success field
	scopeName   = "github.com/longshore-run/longshore/observability/traces"
)

// Collector is where spans go, by OTLP over HTTP with protobuf.
type Collector struct {
	URL     string            // whole, such as http://127.0.0.1:4318/v1/traces
	Headers map[string]string // may hold secrets
	CA      []byte            // PEM; empty: the system's
}

// client sends spans. It does not try again: the stream does.
type client struct {
	to    Collector
	agent string
	http  *http.Client
}

func newClient(to Collector, version string) (*client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the library's own
	if len(to.CA) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(to.CA) {
			return nil, errors.New("the certificate of the collector is no PEM")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &client{to: to, agent: "longshore/" + version, http: &http.Client{
		Transport: transport, Timeout: sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // headers may be secret
	}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// send returns once the collector has taken the spans, and reports whether it threw some away: they are not to be sent
// again, as OTLP asks. An error names neither the address nor a header.
func (c *client) send(ctx context.Context, spans *tracepb.TracesData) (partial bool, err error) {
	body, err := proto.Marshal(spans)
	if err != nil {
		return false, fmt.Errorf("encode: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.to.URL, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the address cannot be called")
	}
	for name, value := range c.to.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", c.agent)
	resp, err := c.http.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which may hold a key
		}
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // the status is what counts
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return len(answer) > emptyAnswer && resp.Header.Get("Content-Type") == contentType, nil
	}
	pause(ctx, resp.Header.Get("Retry-After"))
	return false, fmt.Errorf("it answered %d", resp.StatusCode)
}

// pause waits as long as a collector asks for, within bounds.
func pause(ctx context.Context, after string) {
	n, err := strconv.Atoi(after)
	if err != nil || n <= 0 {
		return
	}
	t := time.NewTimer(time.Duration(min(n, int(maxAfter/time.Second))) * time.Second)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func resourceOf(a attributes) *resourcepb.Resource { return &resourcepb.Resource{Attributes: a} }

func scopeOf(version string) *commonpb.InstrumentationScope {
	return &commonpb.InstrumentationScope{Name: scopeName, Version: version}
}
