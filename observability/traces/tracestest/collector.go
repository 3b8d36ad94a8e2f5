// Package tracestest has a collector for tests: it takes spans over OTLP, as real ones do, and shows them as trees.
package tracestest

import (
	"bytes"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// patience is how long a test waits for spans.
const patience = 30 * time.Second

// Collector takes spans until the test ends. Two spans with the same id and other content fail the test.
type Collector struct {
	URL string

	tb testing.TB

	mu      sync.Mutex
	spans   map[string]*tracepb.Span // by id
	headers http.Header              // of the last request
	status  int                      // what it answers instead of taking spans
	refused int                      // how often it did
	forgets int                      // requests whose spans it takes and then fails
	answer  []byte                   // to spans that it took
	changed chan struct{}
}

// Start starts a collector.
func Start(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{tb: tb, spans: map[string]*tracepb.Span{}, changed: make(chan struct{}, 1)}
	s := httptest.NewServer(http.HandlerFunc(c.take))
	tb.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	defer func() {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}()
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != 0 {
		c.refused++
		w.WriteHeader(c.status)
		return
	}
	var data tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(body, &data)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.tb.Errorf("%s %s of %s: %v", r.Method, r.URL, r.Header.Get("Content-Type"), err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.headers = r.Header.Clone()
	for _, rs := range data.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				c.add(s)
			}
		}
	}
	if c.forgets > 0 {
		c.forgets--
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(c.answer)
}

func (c *Collector) add(s *tracepb.Span) {
	key := hex.EncodeToString(s.GetTraceId()) + hex.EncodeToString(s.GetSpanId())
	if old, twice := c.spans[key]; twice && !proto.Equal(old, s) {
		c.tb.Errorf("two spans %s:\n%v\n%v", key, old, s)
	}
	if len(s.GetTraceId()) != 16 || len(s.GetSpanId()) != 8 || s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() || s.GetStartTimeUnixNano() == 0 {
		c.tb.Errorf("not a span: %v", s)
	}
	c.spans[key] = s
}

// Refuse makes it answer with a status instead of taking spans; 0: no more.
func (c *Collector) Refuse(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// Forget makes it take the spans of the next requests and answer that it failed.
func (c *Collector) Forget(requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgets = requests
}

// Answer makes it answer with a body when it takes spans.
func (c *Collector) Answer(body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = body
}

// AwaitRefused waits until it has refused requests.
func (c *Collector) AwaitRefused(n int) {
	c.tb.Helper()
	c.await("refused requests", func() bool { return c.refused >= n })
}

// Await waits until it has so many spans, and returns all, oldest first.
func (c *Collector) Await(n int) []*tracepb.Span {
	c.tb.Helper()
	c.await("spans", func() bool { return len(c.spans) >= n })
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.spans), before)
}

// AwaitNamed waits for a span with a name and returns it.
func (c *Collector) AwaitNamed(name string) (found *tracepb.Span) {
	c.tb.Helper()
	c.await("the span "+name, func() bool {
		for _, s := range c.spans {
			if s.GetName() == name {
				found = s
			}
		}
		return found != nil
	})
	return found
}

func (c *Collector) await(what string, ok func() bool) {
	c.tb.Helper()
	late := time.After(patience)
	for {
		c.mu.Lock()
		there := ok()
		c.mu.Unlock()
		if there {
			return
		}
		select {
		case <-c.changed:
		case <-late:
			c.tb.Fatalf("no more %s come; there are\n%s", what, c.Tree())
		}
	}
}

// Headers are those of the last request.
func (c *Collector) Headers() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers
}

func before(a, b *tracepb.Span) int {
	switch {
	case a.GetStartTimeUnixNano() != b.GetStartTimeUnixNano():
		return int(int64(a.GetStartTimeUnixNano() - b.GetStartTimeUnixNano()))
	default:
		return strings.Compare(a.GetName(), b.GetName())
	}
}

// Tree shows the spans by their names, each under its parent and oldest first, failures with what failed. One whose
// parent never came stands at the left with that parent's id.
func (c *Collector) Tree() string {
	c.mu.Lock()
	all := slices.SortedFunc(maps.Values(c.spans), before)
	c.mu.Unlock()
	var out strings.Builder
	var show func(s *tracepb.Span, label, indent string)
	show = func(s *tracepb.Span, label, indent string) {
		out.WriteString(label + s.GetName())
		if m := s.GetStatus().GetMessage(); m != "" {
			out.WriteString(" !" + m)
		}
		out.WriteString("\n")
		for _, child := range all {
			if bytes.Equal(child.GetParentSpanId(), s.GetSpanId()) && bytes.Equal(child.GetTraceId(), s.GetTraceId()) {
				show(child, indent+"  ", indent+"  ")
			}
		}
	}
	for _, s := range all {
		parent := func(o *tracepb.Span) bool {
			return bytes.Equal(o.GetSpanId(), s.GetParentSpanId()) && bytes.Equal(o.GetTraceId(), s.GetTraceId())
		}
		switch {
		case len(s.GetParentSpanId()) == 0:
			show(s, "", "")
		case !slices.ContainsFunc(all, parent):
			show(s, "("+hex.EncodeToString(s.GetParentSpanId())+") ", "")
		}
	}
	return out.String()
}

// Attribute of a span as text; empty when it has none of that name.
func Attribute(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			v := a.GetValue()
			if text := v.GetStringValue(); text != "" {
				return text
			}
			return strings.Join(strings.Fields(v.String()), "")
		}
	}
	return ""
}
