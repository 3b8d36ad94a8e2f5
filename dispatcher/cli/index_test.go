package cli_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service/runindex"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/observability/index"
)

// indexed is a fleet whose dispatcher keeps an index, with a run that was cancelled before it began for each tenant.
func indexed(t *testing.T, tenants ...string) *fleet {
	t.Helper()
	f := newFleetWith(t, func(b *bus.Bus) runindex.Index {
		x, err := index.New(index.Config{Bus: b, Where: filepath.Join(t.TempDir(), "index.db")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- x.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
		return x
	})
	for _, tenant := range tenants {
		f.run(t, "submit", "hello", "--tenant", tenant, "--id", "r-"+tenant)
		f.run(t, "cancel", "r-"+tenant, "--tenant", tenant)
	}
	return f
}

// leads waits until the index is applied.
func (f *fleet) leads(t *testing.T) {
	t.Helper()
	client, done, err := f.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if s, err := client.Index().Status(t.Context()); err == nil && s.Leads {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("the index is not applied: %+v, %v", s, err)
		}
	}
}

func TestStatsAndIndex(t *testing.T) {
	f := indexed(t, "acme")
	for name, tc := range map[string]struct {
		args []string
		want []string // in what is written
	}{
		"stats":            {[]string{"stats", "--tenant", "acme"}, []string{"CANCELLED", "all 1 0 0 1"}},
		"by status":        {[]string{"stats", "--tenant", "acme", "--by", "status"}, []string{"cancelled 1 0 0 1", "all 1"}},
		"by tool":          {[]string{"stats", "--tenant", "acme", "--by", "tool"}, []string{"TOOL", "CALLS"}},
		"as JSON":          {[]string{"stats", "--tenant", "acme", "-o", "json"}, []string{`"runs":1`}},
		"without runs":     {[]string{"stats", "--tenant", "other", "-o", "json"}, []string{`"runs":0`}},
		"index status":     {[]string{"index", "status"}, []string{"sqlite: ", " runs, ", " behind\n"}},
		"its JSON":         {[]string{"index", "status", "-o", "json"}, []string{`"kind":"sqlite"`, `"leads":true`}},
		"index rebuild":    {[]string{"index", "rebuild"}, []string{"sqlite: ", " 0 behind\n"}},
		"rebuild, as JSON": {[]string{"index", "rebuild", "-o", "json"}, []string{`"behind":0`}},
	} {
		f.leads(t) // it does not for a moment at the beginning and after a rebuild
		out, _ := f.run(t, tc.args...)
		plain := strings.Join(strings.Fields(out), " ")
		for _, want := range tc.want {
			if !strings.Contains(out, want) && !strings.Contains(strings.ReplaceAll(plain, `": `, `":`), want) {
				t.Errorf("%s: %q is not in %q", name, want, out)
			}
		}
	}
	// What was there is there after a rebuild.
	var s control.IndexStatus
	if err := json.Unmarshal([]byte(f.raw(t, "index", "status", "-o", "json")), &s); err != nil || s.Runs != 1 || s.Error != "" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, args := range [][]string{{"stats", "--by", "weather"}, {"stats", "x"}, {"index", "status", "x"}, {"index", "rebuild", "x"}} {
		if _, _, err := executeWith(t, f.connect, "", args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestStatsWithoutAnIndex(t *testing.T) {
	f := newFleet(t)
	const want = "the dispatcher keeps no index of runs, or cannot ask it now: see LONGSHORE_INDEX and its log"
	for _, args := range [][]string{{"stats"}, {"index", "status"}, {"index", "rebuild"}} {
		f.fails(t, want, args...)
	}
}

// A client of one tenant lists, counts and reads only the runs of that tenant.
func TestIndexOfATenant(t *testing.T) {
	f := indexed(t, "acme", "other")
	nc, err := f.servers.Conn()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c, err := dispatcher.NewTenant(t.Context(), nc, "acme")
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Runs().List(t.Context(), dispatcher.RunFilter{Tenant: "acme"})
	if err != nil || len(list.Runs) != 1 || list.Runs[0].ID != "r-acme" {
		t.Errorf("runs: %+v, %v", list, err)
	}
	stats, err := c.Runs().Stats(t.Context(), dispatcher.RunFilter{Tenant: "acme"}, control.StatsByStatus)
	if err != nil || stats.Total.Runs != 1 {
		t.Errorf("stats: %+v, %v", stats, err)
	}
	if steps, err := c.Runs().Steps(t.Context(), messages.Ref{Tenant: "acme", Run: "r-acme"}); err != nil || len(steps.Steps) != 0 {
		t.Errorf("steps: %+v, %v", steps, err)
	}
	if list, err := c.Runs().List(t.Context(), dispatcher.RunFilter{Tenant: "other"}); err == nil && len(list.Runs) > 0 {
		t.Errorf("runs of another: %+v", list)
	}
	if stats, err := c.Runs().Stats(t.Context(), dispatcher.RunFilter{Tenant: "other"}, ""); err == nil && stats.Total.Runs > 0 {
		t.Errorf("stats of another: %+v", stats)
	}
	if _, err := c.Runs().Steps(t.Context(), messages.Ref{Tenant: "other", Run: "r-other"}); err == nil {
		t.Error("steps of another")
	}
	if _, err := c.Index().Status(t.Context()); err == nil {
		t.Error("a tenant sees the status of the fleet's index")
	}
	if err := c.Index().Rebuild(t.Context()); err == nil {
		t.Error("a tenant makes the index again")
	}
}
