//go:build unix

package fleet_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/deploy/settings"
)

// composePath is the file that newcomers start a fleet with; paths in it are relative to its folder.
const composePath = "../compose.yaml"

// composeFile is what the file may hold: a key that is not here fails the test.
type composeFile struct {
	Name              string                    `yaml:"name"`
	Longshore         composeService            `yaml:"x-longshore"`
	WorkerEnvironment map[string]string         `yaml:"x-worker-environment"`
	Services          map[string]composeService `yaml:"services"`
	Volumes           map[string]*struct{}      `yaml:"volumes"`
}

type composeService struct {
	Image           string                 `yaml:"image"`
	Build           *composeBuild          `yaml:"build"`
	User            string                 `yaml:"user"`
	Command         []string               `yaml:"command"`
	Environment     map[string]string      `yaml:"environment"`
	Ports           []string               `yaml:"ports"`
	Volumes         []string               `yaml:"volumes"`
	Tmpfs           []string               `yaml:"tmpfs"`
	DependsOn       map[string]composeNeed `yaml:"depends_on"`
	ReadOnly        bool                   `yaml:"read_only"`
	CapDrop         []string               `yaml:"cap_drop"`
	SecurityOpt     []string               `yaml:"security_opt"`
	Restart         string                 `yaml:"restart"`
	StopGracePeriod string                 `yaml:"stop_grace_period"`
	Healthcheck     *composeHealth         `yaml:"healthcheck"`
	Logging         *composeLogging        `yaml:"logging"`
}

type composeBuild struct {
	Context    string `yaml:"context"`
	Dockerfile string `yaml:"dockerfile"`
}

type composeNeed struct {
	Condition string `yaml:"condition"`
}

type composeHealth struct {
	Test        []string `yaml:"test"`
	Interval    string   `yaml:"interval"`
	Timeout     string   `yaml:"timeout"`
	Retries     int      `yaml:"retries"`
	StartPeriod string   `yaml:"start_period"`
}

type composeLogging struct {
	Driver  string            `yaml:"driver"`
	Options map[string]string `yaml:"options"`
}

func readCompose(t *testing.T) *composeFile {
	t.Helper()
	data, err := os.ReadFile(composePath)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var c composeFile
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// ours reports whether a service runs this repository's program.
func (s *composeService) ours() bool { return s.Build != nil }

// variable is a variable of the environment of who calls docker compose, with its default.
var variable = regexp.MustCompile(`\$\{(\w+):-([^}]*)\}`)

// environ is the environment of a service when who starts it has some variables of his own.
func (s *composeService) environ(own map[string]string) []string {
	var out []string
	for name, value := range s.Environment {
		value = variable.ReplaceAllStringFunc(value, func(found string) string {
			m := variable.FindStringSubmatch(found)
			if v := own[m[1]]; v != "" {
				return v
			}
			return m[2]
		})
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// mount is a file or folder of this machine in a container, or a volume.
type mount struct {
	from, to string
	volume   bool
	readOnly bool
}

func (s *composeService) mounts() []mount {
	var out []mount
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		m := mount{from: parts[0], readOnly: len(parts) > 2 && parts[2] == "ro"}
		if len(parts) > 1 {
			m.to = parts[1]
		}
		if m.volume = !strings.HasPrefix(m.from, "."); !m.volume {
			m.from = filepath.Join(filepath.Dir(composePath), m.from)
		}
		out = append(out, m)
	}
	return out
}

func TestComposeServices(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	var names []string
	for name := range c.Services {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"dispatcher", "grafana", "nats", "prometheus", "redis", "worker-1", "worker-2"}; !slices.Equal(names, want) {
		t.Errorf("services: %v", names)
	}
	pinned := regexp.MustCompile(`^[a-z0-9][a-z0-9./-]*:v?[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9.]+)?(@sha256:[0-9a-f]{64})?$`)
	used := map[string]bool{}
	for name, s := range c.Services {
		if !s.ours() && !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %s has no exact version", name, s.Image)
		}
		if s.ours() {
			if _, err := os.Stat(filepath.Join(filepath.Dir(composePath), s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") || strings.Count(p, ":") != 2 {
				t.Errorf("%s: the port %s is not published on this machine alone", name, p)
			}
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s may do more than it needs: %+v", name, s)
		}
		if s.Restart != "unless-stopped" || s.Healthcheck == nil || len(s.Healthcheck.Test) < 2 || s.Healthcheck.Test[0] != "CMD" || s.Logging == nil {
			t.Errorf("%s: restart %q, health check %+v, logging %+v", name, s.Restart, s.Healthcheck, s.Logging)
		}
		for other, need := range s.DependsOn {
			if o, ok := c.Services[other]; !ok || o.Healthcheck == nil || need.Condition != "service_healthy" && need.Condition != "service_started" {
				t.Errorf("%s needs %s, %s", name, other, need.Condition)
			}
		}
		for _, m := range s.mounts() {
			if _, declared := c.Volumes[m.from]; m.volume {
				used[m.from] = true
				if !declared || m.readOnly {
					t.Errorf("%s: the volume %s is not declared, or cannot be written", name, m.from)
				}
				continue
			}
			if _, err := os.Stat(m.from); err != nil || !m.readOnly || !filepath.IsAbs(m.to) {
				t.Errorf("%s: %+v: %v", name, m, err)
			}
		}
	}
	for name := range c.Volumes {
		if !used[name] {
			t.Errorf("no service uses the volume %s", name)
		}
	}
}

// Prometheus asks, and the ports lead to, where our services listen.
func TestComposePorts(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	scrapes, err := os.ReadFile("../prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range c.Services {
		if !s.ours() {
			continue
		}
		_, port, _ := strings.Cut(s.Environment["LONGSHORE_HTTP_ADDR"], ":")
		at := regexp.MustCompile(`\b`+name+`:(\d+)`).FindAllStringSubmatch(string(scrapes), -1)
		if len(at) != 1 || at[0][1] != port {
			t.Errorf("%s listens on %s, and is scraped at %v", name, port, at)
		}
		for _, p := range s.Ports {
			if !strings.HasSuffix(p, ":"+port) {
				t.Errorf("%s listens on %s, and %s is published", name, port, p)
			}
		}
	}
}

// Our services have commands that exist, and variables that they read, and can start with and without a key.
func TestComposeOfOurs(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	names := func(vs []settings.Variable) map[string]bool {
		out := map[string]bool{}
		for _, v := range vs {
			out[v.Name] = true
		}
		return out
	}
	known := map[string]map[string]bool{"dispatcher": names(settings.Variables(settings.Dispatcher{})), "worker": names(settings.Variables(settings.Worker{}))}
	for name, s := range c.Services {
		if !s.ours() {
			for v := range s.Environment {
				if !strings.HasPrefix(v, "GF_") || name != "grafana" {
					t.Errorf("%s has the variable %s", name, v)
				}
			}
			continue
		}
		if len(s.Command) != 1 || known[s.Command[0]] == nil {
			t.Errorf("%s: command %v", name, s.Command)
			continue
		}
		reads := known[s.Command[0]]
		for v, value := range s.Environment {
			if !reads[v] {
				t.Errorf("%s has the variable %s, which nothing reads", name, v)
			}
			for _, m := range variable.FindAllStringSubmatch(value, -1) {
				if !reads[m[1]] {
					t.Errorf("%s: %s=%s: nothing reads %s", name, v, value, m[1])
				}
			}
			if strings.Contains(variable.ReplaceAllString(value, ""), "$") {
				t.Errorf("%s: %s=%s: a variable needs a default", name, v, value)
			}
		}
		check := s.Healthcheck.Test[1:]
		if !strings.Contains(string(dockerfile), `ENTRYPOINT ["`+check[0]+`"]`) {
			t.Errorf("%s: %s is not the program of the image", name, check[0])
		}
		for _, args := range [][]string{append(slices.Clone(s.Command), "--help"), append(slices.Clone(check[1:]), "--help")} {
			if got := call(t, nil, args...); got.code != 0 || !strings.Contains(got.stdout, "longshore "+args[0]) {
				t.Errorf("%s: longshore %v: %+v", name, args, got)
			}
		}
		if !strings.Contains(string(dockerfile), "USER "+s.User+"\n") {
			t.Errorf("%s: user %s is not that of the image, which owns its folders", name, s.User)
		}
	}
	w, d := c.Services["worker-1"], c.Services["dispatcher"]
	cache := regexp.MustCompile(`XDG_CACHE_HOME=(\S+)`).FindSubmatch(dockerfile)
	if cache == nil || !slices.ContainsFunc(d.mounts(), func(m mount) bool { return m.volume && m.to == string(cache[1]) }) {
		t.Errorf("the dispatcher has no place for the run index: %v, and the image's is %q", d.Volumes, cache)
	}
	if cache != nil && !bytes.Contains(dockerfile, []byte(" SQLITE_TMPDIR="+string(cache[1]))) { // where statistics of many runs are sorted
		t.Error("the run index has no place for temporary files: nothing else can be written to")
	}
	for want, own := range map[string]map[string]string{
		settings.NameScripted:  nil,
		settings.NameOpenAI:    {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"},
		settings.NameAnthropic: {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_MODEL": "m"},
	} {
		var s settings.Worker
		if err := settings.Load(&s, w.environ(own)); err != nil || s.Default() != want {
			t.Errorf("with %v: the model is that of %s, %v", own, s.Default(), err)
		}
		if grace, err := time.ParseDuration(w.StopGracePeriod); err != nil || grace < s.DrainTimeout+20*time.Second {
			t.Errorf("a worker is killed after %s, and drains for %s and then needs up to 20s", w.StopGracePeriod, s.DrainTimeout)
		}
	}
	for _, auth := range []string{"", settings.AuthOn} {
		var s settings.Dispatcher
		if err := settings.Load(&s, d.environ(map[string]string{"LONGSHORE_AUTH": auth})); err != nil || s.On() != (auth != "") {
			t.Errorf("with LONGSHORE_AUTH=%q: %q, %v", auth, s.Auth, err)
		}
	}
}
