//go:build unix

package fleet_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/observability"
)

// documented is a metric with the processes that have it.
type documented struct {
	observability.Described
	of []string
}

// measured is a fleet in this process, with everything on that has metrics.
type measured struct {
	t     *testing.T
	town  *town
	pages map[string]string // addresses by process
}

func (m *measured) start(name string, run func(ctx context.Context, up func(string)) error) (stop func()) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	up, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- run(ctx, func(addr string) { up <- addr }) }()
	stopped := false
	stop = func() {
		if cancel(); stopped {
			return
		}
		stopped = true
		if err := <-done; err != nil {
			m.t.Errorf("%s: %v", name, err)
		}
	}
	select {
	case m.pages[name] = <-up:
	case err := <-done:
		m.t.Fatalf("%s: %v", name, err)
	case <-time.After(patience):
		m.t.Fatalf("%s is not ready", name)
	}
	m.t.Cleanup(stop)
	return stop
}

func (m *measured) dispatcher(name string, servers *embedded.Servers, change ...func(*settings.Dispatcher)) (stop func()) {
	return m.start(name, func(ctx context.Context, up func(string)) error {
		s := settings.Dispatcher{
			NATS: settings.NATS{URL: servers.NATSURL}, HTTPAddr: "127.0.0.1:0", Replicas: 1, Sweep: time.Minute, EventsMaxAge: 2 * time.Hour,
			Serving: settings.Serving{
				AckWait: shortAckWait, Retention: time.Hour,
				RunIndex: settings.RunIndex{Index: filepath.Join(m.t.TempDir(), "index.db"), IndexRetain: time.Hour},
				Access:   settings.Access{Auth: settings.AuthOn, MetricsOpen: true, TenantClaim: "tenant", RolesClaim: "roles"},
				Webhooks: settings.Webhooks{WebhookSecret: strings.Repeat("webhook secret ", 3)},
			},
		}
		for _, c := range change {
			c(&s)
		}
		return fleet.Dispatcher(ctx, s, "test", slog.New(slog.DiscardHandler), up)
	})
}

func (m *measured) worker(servers *embedded.Servers) {
	m.start("worker", func(ctx context.Context, up func(string)) error {
		return fleet.Worker(ctx, settings.Worker{
			NATS: settings.NATS{URL: servers.NATSURL}, RedisURL: servers.RedisURL, HTTPAddr: "127.0.0.1:0", Name: "w", Runs: settings.Runs{
				Slots:        4,
				DrainTimeout: time.Second, ModelTimeout: time.Minute, MemoryTTL: time.Hour,
			}, Workspaces: m.t.TempDir(),
			LongTerm: settings.LongTerm{Memory: settings.MemorySQLite + filepath.Join(m.t.TempDir(), "memory.db")},
			Models: settings.Models{
				OpenAIKey: apiKey, OpenAIURL: m.town.model.URL, OpenAIModel: "gpt-4o", ModelRPM: 100_000, ReplyCacheTTL: time.Minute,
			},
		}, "test", slog.New(slog.DiscardHandler), fleet.Parts{}, up)
	})
}

func measure(t *testing.T, script func(*modelCall) reply) (*measured, *embedded.Servers) {
	t.Helper()
	servers := embeddedtest.Start(t)
	m := &measured{t: t, pages: map[string]string{}}
	m.dispatcher("dispatcher", servers)
	m.town = &town{t: t, nats: servers.NATSURL, redis: servers.RedisURL, model: newModel(t, script)}
	m.town.connect()
	m.worker(servers)
	return m, servers
}

// page is what a process shows.
func (m *measured) page(name string) string {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, "http://"+m.pages[name]+"/metrics", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		m.t.Fatalf("%s: %s %v", name, resp.Status, err)
	}
	return string(body)
}

// shown are the metrics of ours on a page.
func shown(page string) map[string]observability.Described {
	all := map[string]observability.Described{}
	for line := range strings.Lines(page) {
		if what, ok := strings.CutPrefix(line, "# HELP longshore_"); ok {
			name, help, _ := strings.Cut(strings.TrimSpace(what), " ")
			all["longshore_"+name] = observability.Described{Name: "longshore_" + name, Help: help}
		}
		if what, ok := strings.CutPrefix(line, "# TYPE longshore_"); ok {
			name, kind, _ := strings.Cut(strings.TrimSpace(what), " ")
			d := all["longshore_"+name]
			d.Type = kind
			all["longshore_"+name] = d
		}
		name, labels, ok := strings.Cut(line, "{")
		if d, has := all[name]; ok && has {
			labels, _, _ = strings.Cut(labels, "}")
			d.Labels = nil
			for l := range strings.SplitSeq(labels, ",") {
				l, _, _ = strings.Cut(l, "=")
				d.Labels = append(d.Labels, l)
			}
			all[name] = d
		}
	}
	return all
}

// all are the metrics of a fleet: what its processes show, and what they show only once there is something to count.
func (m *measured) all() []documented {
	later := observability.NewMetrics("")
	observability.NewEvents(later)
	if _, err := observability.NewView(later, nil, nil, nil); err != nil {
		m.t.Fatal(err)
	}
	all := map[string]documented{}
	know := func(of string, d observability.Described) {
		has := all[d.Name]
		if slices.Contains(has.of, of) {
			return
		}
		all[d.Name] = documented{d, append(has.of, of)}
	}
	for _, d := range later.Described() {
		know("dispatcher", d)
	}
	for _, of := range []string{"dispatcher", "worker"} {
		for _, d := range shown(m.page(of)) {
			know(of, d)
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b documented) int { return cmp.Compare(a.Name, b.Name) })
}

func hello(*modelCall) reply { return reply{Text: "Hello."} }

func TestMetricsOfAFleet(t *testing.T) {
	t.Parallel()
	m, servers := measure(t, hello)
	stop := m.dispatcher("second", servers)
	for i := range 4 {
		m.town.watch(m.town.submit(fmt.Sprintf("hello %d", i))).end()
	}
	counted := func(name string) (total int) {
		for _, of := range []string{"dispatcher", "second"} {
			for line := range strings.Lines(m.page(of)) {
				var n int
				if strings.HasPrefix(line, name) {
					if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &n); err == nil {
						total += n
					}
				}
			}
		}
		return total
	}
	const finished = `longshore_runs_finished_total{agent="default",code="none",status="completed"}`
	eventually(t, "each run is counted", func() bool { return counted(finished) == 4 })
	// The other dispatcher may have those, and be behind.
	eventually(t, "each model call is counted", func() bool { return counted("longshore_model_calls_total{") == 4 })
	eventually(t, "each first token is counted", func() bool { return counted("longshore_time_to_first_token_seconds_count{") == 4 })
	worker := m.page("worker")
	if strings.Contains(worker, "longshore_runs_finished_total") || strings.Contains(worker, "longshore_events_seen_total") {
		t.Error("a worker counts events")
	}
	eventually(t, "the fleet is seen", func() bool {
		page := m.page("dispatcher")
		return strings.Contains(page, "\nlongshore_fleet_slots ") && strings.Contains(page, `longshore_consumer_lag{consumer="metrics"}`)
	})
	before := counted(finished) // of the second one alone some are lost with it
	stop()
	delete(m.pages, "second")
	m.pages["second"] = m.pages["dispatcher"] // counted twice from here on
	one := counted(finished) / 2
	m.town.watch(m.town.submit("hello after")).end()
	eventually(t, "the other one counts on", func() bool { return counted(finished)/2 == one+1 })
	if before != 4 {
		t.Errorf("%d runs", before)
	}
}

// The table in docs/metrics.md is what the processes of a fleet have. UPDATE_DOCS=1 writes it anew.
func TestMetricsTable(t *testing.T) {
	t.Parallel()
	m, _ := measure(t, hello)
	m.town.watch(m.town.submit("hello")).end()
	eventually(t, "the fleet was looked at", func() bool { return strings.Contains(m.page("dispatcher"), "longshore_fleet_workers") })
	var table strings.Builder
	table.WriteString("| Metric | Type | Labels | Of | What it is |\n|---|---|---|---|---|\n")
	for _, d := range m.all() {
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(slices.Sorted(slices.Values(d.Labels)), "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Type, labels, strings.Join(d.of, ", "), d.Help)
	}
	const begin, end = "<!-- metrics: generated from a fleet -->\n", "<!-- end of metrics -->\n"
	path := filepath.Join("..", "..", "docs", "metrics.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	has, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	want := "\n" + table.String() + "\n"
	switch {
	case has == want:
	case os.Getenv("UPDATE_DOCS") != "":
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is not what a fleet has; UPDATE_DOCS=1 go test ./deploy/fleet -run MetricsTable writes it", path)
	}
}
