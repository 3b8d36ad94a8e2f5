// Package prometheus_test checks the rules, the alerts and the configuration for Prometheus in this folder.
package prometheus_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const (
	rulesFile = "rules/longshore.rules.yml"
	testFiles = "tests/*.test.yml"
	docs      = "../../docs/metrics.md"
)

// rule is a rule of either kind.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	read(t, rulesFile, &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

// documented are the metrics of a fleet by name, with their types, as docs/metrics.md lists them; a test of deploy/fleet
// compares that list with the processes.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(docs))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(longshore_[a-z0-9_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = m[2]
	}
	if len(all) == 0 {
		t.Fatalf("%s lists no metrics", docs)
	}
	return all
}

func TestEveryMetricExists(t *testing.T) {
	metrics, recorded := documented(t), map[string]bool{}
	for _, r := range rules(t) {
		recorded[r.Record] = true
	}
	for _, r := range rules(t) {
		for _, name := range regexp.MustCompile(`longshore[_:][a-zA-Z0-9_:]+`).FindAllString(r.Expr, -1) {
			base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if metrics[name] == "" && metrics[base] != "histogram" && !recorded[name] {
				t.Errorf("%s%s uses %s, which no process has", r.Record, r.Alert, name)
			}
			if metrics[name] == "histogram" {
				t.Errorf("%s%s uses %s, of which there are only buckets, sum and count", r.Record, r.Alert, name)
			}
		}
	}
}

func TestEveryAlertIsExplained(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(docs))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if seen[r.Alert] {
			t.Errorf("%s is there twice", r.Alert)
		}
		seen[r.Alert] = true
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", r.Alert)
		}
		if want := "docs/metrics.md#" + strings.ToLower(r.Alert); r.Annotations["runbook"] != want {
			t.Errorf("the runbook of %s is %q, want %q", r.Alert, r.Annotations["runbook"], want)
		}
		if !strings.Contains(string(text), "\n### "+r.Alert+"\n\n") {
			t.Errorf("%s does not say what to do about %s", docs, r.Alert)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Longshore\w+)$`).FindAllStringSubmatch(string(text), -1) {
		if !seen[m[1]] {
			t.Errorf("%s explains %s, which is no alert", docs, m[1])
		}
	}
}

func testPaths(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.FromSlash(testFiles))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no %s: %v", testFiles, err)
	}
	return paths
}

// Each alert has a test in which it fires and one in which it does not.
func TestEveryAlertIsTested(t *testing.T) {
	type tests struct {
		Tests []struct {
			Cases []struct {
				Alert string `yaml:"alertname"`
				Want  []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, path := range testPaths(t) {
		var file tests
		read(t, path, &file)
		for _, test := range file.Tests {
			for _, c := range test.Cases {
				if len(c.Want) > 0 {
					fires[c.Alert] = true
				} else {
					silent[c.Alert] = true
				}
			}
		}
	}
	for _, r := range rules(t) {
		if r.Alert != "" && (!fires[r.Alert] || !silent[r.Alert]) {
			t.Errorf("%s: a test in which it fires: %t; one in which it does not: %t", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}

// Every job that an alert names is one of the configuration.
func TestConfigurationHasTheJobs(t *testing.T) {
	var file struct {
		Rules []string `yaml:"rule_files"`
		Jobs  []struct {
			Name string `yaml:"job_name"`
		} `yaml:"scrape_configs"`
	}
	read(t, "prometheus.yml", &file)
	var jobs []string
	for _, j := range file.Jobs {
		jobs = append(jobs, j.Name)
	}
	for _, r := range rules(t) {
		for _, m := range regexp.MustCompile(`job="([^"]+)"`).FindAllStringSubmatch(r.Expr, -1) {
			if !slices.Contains(jobs, m[1]) {
				t.Errorf("%s is about the job %s, which is not scraped", r.Alert, m[1])
			}
		}
	}
	for _, glob := range file.Rules {
		if ok, err := filepath.Match(filepath.Base(glob), filepath.Base(rulesFile)); err != nil || !ok {
			t.Errorf("%s does not match %s", glob, rulesFile)
		}
	}
}

func TestPromtool(t *testing.T) {
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("no promtool on the PATH: its check of rules, alerts and their tests was left out")
		return
	}
	for name, args := range map[string][]string{
		"configuration": {"check", "config", "prometheus.yml"},
		"rules":         {"check", "rules", rulesFile},
		"alerts":        append([]string{"test", "rules"}, testPaths(t)...),
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
			if err != nil {
				t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		})
	}
}
