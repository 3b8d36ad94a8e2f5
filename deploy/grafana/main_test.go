package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

func TestDashboardsAreGenerated(t *testing.T) {
	files, err := filepath.Glob("dashboards/*")
	if err != nil || len(files) != len(boards()) {
		t.Errorf("there are %v, want %d files: %v", files, len(boards()), err)
	}
	for name, board := range boards() {
		want, err := render(board)
		if err != nil {
			t.Fatal(err)
		}
		has, err := os.ReadFile(filepath.Join("dashboards", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(has)); diff != "" {
			t.Errorf("%s differs; go run ./deploy/grafana writes it:\n%s", name, diff)
		}
	}
}

func TestPanels(t *testing.T) {
	uids := map[string]bool{}
	for name, board := range boards() {
		if uids[board.UID] {
			t.Errorf("%s has the uid of another one", name)
		}
		uids[board.UID] = true
		taken, titles := map[[2]int]string{}, map[string]bool{}
		for _, p := range board.Panels {
			if p.Title == "" || titles[p.Title] || len(p.Targets) == 0 && p.Type != typeRow {
				t.Errorf("%s: panel %d %q has no title of its own, or asks nothing", name, p.ID, p.Title)
			}
			titles[p.Title] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if at := [2]int{x, y}; taken[at] != "" || x >= width {
						t.Fatalf("%s: %q lies over %q, or beyond the edge", name, p.Title, taken[at])
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

// queries are all, by the place where they are asked.
func queries() map[string]string {
	all := map[string]string{}
	in := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h") // as Grafana does
	for name, board := range boards() {
		for _, p := range board.Panels {
			for _, q := range p.Targets {
				all[name+": "+p.Title+" "+q.RefID] = in.Replace(q.Expr)
			}
		}
	}
	return all
}

func TestEveryMetricExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md")) // a test of deploy/fleet compares it with the processes
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(longshore_[a-z0-9_]+)` \\| ([a-z]+) \\| (.*?) \\|").FindAllStringSubmatch(string(text), -1) {
		metrics[m[1]] = m[2]
	}
	asked := regexp.MustCompile(`longshore[_:][a-zA-Z0-9_:]+`)
	for at, q := range queries() {
		names := asked.FindAllString(q, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for none of our metrics", at)
		}
		for _, name := range names {
			base := strings.TrimSuffix(name, "_bucket")
			if base != name && metrics[base] == "histogram" {
				continue
			}
			if kind := metrics[name]; kind == "" || kind == "histogram" {
				t.Errorf("%s asks for %s, which no process has", at, name)
			}
		}
	}
}

// Counters are of use as a rate or an increase alone: they begin anew with each process.
func TestCountersAreRated(t *testing.T) {
	counter := regexp.MustCompile(`(\w+)\(longshore_\w+(_total|_bucket)\b`)
	all := regexp.MustCompile(`longshore_\w+(_total|_bucket)\b`)
	for at, q := range queries() {
		rated := 0
		for _, m := range counter.FindAllStringSubmatch(q, -1) {
			if m[1] == "rate" || m[1] == "increase" {
				rated++
			}
		}
		if n := len(all.FindAllString(q, -1)); n != rated {
			t.Errorf("%s: a counter without a rate: %s", at, q)
		}
	}
}

func TestEveryQueryParses(t *testing.T) {
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("no promtool on the PATH: whether it can read the queries was left out")
		return
	}
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	type group struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	}
	g := group{Name: "queries"}
	for _, q := range queries() {
		g.Rules = append(g.Rules, rule{fmt.Sprintf("query:%d", len(g.Rules)), q})
	}
	data, err := yaml.Marshal(map[string][]group{"groups": {g}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// What is provisioned fits together: the dashboards ask the data source that there is, and are found.
func TestProvisioning(t *testing.T) {
	var sources struct {
		Sources []struct {
			Type, URL string
		} `yaml:"datasources"`
	}
	var providers struct {
		Providers []struct {
			Options struct{ Path string }
		}
	}
	for file, into := range map[string]any{"datasources/prometheus.yml": &sources, "dashboards/longshore.yml": &providers} {
		data, err := os.ReadFile(filepath.Join("provisioning", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(data, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if len(sources.Sources) != 1 || sources.Sources[0].Type != "prometheus" || sources.Sources[0].URL == "" {
		t.Errorf("data sources %+v, want one Prometheus", sources.Sources)
	}
	if len(providers.Providers) != 1 || providers.Providers[0].Options.Path == "" {
		t.Errorf("providers %+v, want one with a path", providers.Providers)
	}
}
