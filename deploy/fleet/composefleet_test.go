//go:build unix

package fleet_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
)

// composed are the parts of the compose file as processes of this machine: each address in a container has become one
// of the loopback interface, and each path there a path here.
type composed struct {
	t     *testing.T
	file  *composeFile
	ports map[string]string // by address in the network of the containers, such as nats:4222
	paths map[string]string // of volumes by name
	procs map[string]*process
}

func newComposed(t *testing.T) *composed {
	t.Helper()
	return &composed{t: t, file: readCompose(t), ports: map[string]string{}, paths: map[string]string{}, procs: map[string]*process{}}
}

// at is the loopback address of a port of a service.
func (c *composed) at(service, port string) string {
	key := service + ":" + port
	if c.ports[key] == "" {
		c.ports[key] = fmt.Sprintf("127.0.0.1:%d", freePort(c.t))
	}
	return c.ports[key]
}

// here is a text of a service with the addresses and paths of this machine.
func (c *composed) here(service, text string) string {
	for other := range c.file.Services {
		found := regexp.MustCompile(`\b` + regexp.QuoteMeta(other) + `:(\d+)`)
		text = found.ReplaceAllStringFunc(text, func(at string) string { return c.at(other, found.FindStringSubmatch(at)[1]) })
	}
	own := regexp.MustCompile(`\b0\.0\.0\.0:(\d+)`)
	text = own.ReplaceAllStringFunc(text, func(at string) string { return c.at(service, own.FindStringSubmatch(at)[1]) })
	s := c.file.Services[service]
	paths, inside := map[string]string{}, []string{}
	for _, m := range s.mounts() {
		paths[m.to] = c.path(m)
		inside = append(inside, regexp.QuoteMeta(m.to))
	}
	if len(inside) == 0 {
		return text
	}
	path := regexp.MustCompile(`(^|[^\w./-])(` + strings.Join(inside, "|") + `)\b`)
	return path.ReplaceAllStringFunc(text, func(found string) string {
		m := path.FindStringSubmatch(found)
		return m[1] + paths[m[2]]
	})
}

// path is where a mount is on this machine.
func (c *composed) path(m mount) string {
	if !m.volume {
		at, err := filepath.Abs(m.from)
		if err != nil {
			c.t.Fatal(err)
		}
		return at
	}
	if c.paths[m.from] == "" {
		c.paths[m.from] = c.t.TempDir()
	}
	return c.paths[m.from]
}

// copied is a configuration file of a service, with the addresses and paths of this machine.
func (c *composed) copied(service, file string) string {
	c.t.Helper()
	data, err := os.ReadFile(c.here(service, file))
	if err != nil {
		c.t.Fatal(err)
	}
	often := regexp.MustCompile(`(scrape_interval|scrape_timeout): \w+`) // of Prometheus: the test does not wait so long
	text := often.ReplaceAllString(c.here(service, string(data)), "${1}: 500ms")
	out := filepath.Join(c.t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return out
}

// startNATS starts the server of the fleet's own library with the configuration of the service.
func (c *composed) startNATS() {
	c.t.Helper()
	s := c.file.Services["nats"]
	opts, err := server.ProcessConfigFile(c.copied("nats", s.Command[slices.Index(s.Command, "--config")+1]))
	if err != nil {
		c.t.Fatal(err)
	}
	opts.NoSigs, opts.NoLog = true, true
	ns, err := server.NewServer(opts)
	if err != nil {
		c.t.Fatal(err)
	}
	ns.Start()
	c.t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(patience) {
		c.t.Fatal("NATS is not ready")
	}
	if got, want := ns.ClientURL(), "nats://"+c.at("nats", "4222"); got != want {
		c.t.Errorf("NATS listens on %s, want %s", got, want)
	}
	check := c.file.Services["nats"].Healthcheck.Test
	c.healthy("nats", check[len(check)-1])
}

// healthy asks the address of a health check.
func (c *composed) healthy(service, url string) {
	c.t.Helper()
	own := regexp.MustCompile(`127\.0\.0\.1:(\d+)`)
	url = own.ReplaceAllStringFunc(url, func(at string) string { return c.at(service, own.FindStringSubmatch(at)[1]) })
	eventually(c.t, service+" is healthy", func() bool {
		status, _ := c.get(url)
		return status == http.StatusOK
	})
}

func (c *composed) get(url string) (int, string) {
	c.t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// startRedis starts the redis-server on the PATH with the arguments of the service, else the embedded store.
func (c *composed) startRedis() {
	c.t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		c.t.Log("no redis-server on the PATH: the redis of compose.yaml is left out")
		c.ports["redis:6379"] = strings.TrimSuffix(strings.TrimPrefix(embeddedtest.Start(c.t, embedded.Config{NATSAddr: embedded.NoListen}).RedisURL, "redis://"), "/0")
		return
	}
	host, port, _ := strings.Cut(c.at("redis", "6379"), ":")
	args := append([]string{"-c", `exec "$0" "$@" >&2`, program}, c.file.Services["redis"].Command[1:]...)
	c.procs["redis"] = spawn(c.t, "redis", nil, "sh", append(args, "--bind", host, "--port", port)...)
	c.procs["redis"].line("Ready to accept connections")
}

// startOurs starts a service of ours with its environment, and waits until its own health check says that it is ready.
func (c *composed) startOurs(service string, own map[string]string) {
	c.t.Helper()
	s := c.file.Services[service]
	var env []string
	for _, v := range s.environ(own) {
		env = append(env, c.here(service, v))
	}
	c.procs[service] = spawn(c.t, service, env, binary, s.Command...)
	c.procs[service].line(`"message":"ready"`)
	if got := call(c.t, env, s.Healthcheck.Test[2:]...); got.code != 0 {
		c.t.Errorf("%s is not healthy: %+v", service, got)
	}
}

// startPrometheus starts the prometheus on the PATH with the configuration of the service.
func (c *composed) startPrometheus() bool {
	c.t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		c.t.Log("no prometheus on the PATH: the prometheus of compose.yaml is left out")
		return false
	}
	s := c.file.Services["prometheus"]
	var args []string
	for _, arg := range s.Command {
		if config, ok := strings.CutPrefix(arg, "--config.file="); ok {
			args = append(args, "--config.file="+c.copied("prometheus", config))
			continue
		}
		args = append(args, c.here("prometheus", arg))
	}
	c.procs["prometheus"] = spawn(c.t, "prometheus", nil, program, append(args, "--web.listen-address="+c.at("prometheus", "9090"))...)
	c.procs["prometheus"].line("Server is ready to receive web requests")
	c.healthy("prometheus", s.Healthcheck.Test[len(s.Healthcheck.Test)-1])
	return true
}

// The parts of the compose file work together: a task that comes in by HTTP is worked, one worker continues when the other
// is stopped, and Prometheus finds all of them.
func TestComposeFleet(t *testing.T) {
	t.Parallel()
	c := newComposed(t)
	c.startNATS()
	c.startRedis()
	c.startOurs("dispatcher", nil)
	c.startOurs("worker-1", nil)
	c.startOurs("worker-2", nil)
	t.Log("grafana runs in a container alone: the grafana of compose.yaml is left out")
	api := "http://" + c.at("dispatcher", "8420")
	submit := func(agent string) {
		t.Helper()
		body := strings.NewReader(`{"input":"Say hello.","agent":` + strconv.Quote(agent) + `}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api+"/v1/tasks?wait=30s", body)
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Timeout: 2 * patience, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var reply struct {
			Status messages.Status `json:"status"`
			Result struct {
				Result string `json:"result"`
			} `json:"result"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil || reply.Status != messages.StatusCompleted || !strings.Contains(reply.Result.Result, "scripted model") {
			t.Errorf("agent %q: %s %+v, %v", agent, resp.Status, reply, err)
		}
	}
	submit("")
	submit("writer") // an agent of the mounted folder
	if files, err := filepath.Glob(filepath.Join(c.paths["workspaces"], "default", "*", "longshore-demo.md")); err != nil || len(files) != 2 {
		t.Errorf("files in the volume: %v, %v", files, err)
	}
	if got := call(t, []string{"NATS_URL=nats://" + c.at("nats", "4222")}, "workers"); got.code != 0 || !strings.Contains(got.stdout, "worker-1") || !strings.Contains(got.stdout, "worker-2") {
		t.Errorf("workers: %+v", got)
	}
	if c.startPrometheus() {
		c.scraped("dispatcher", "worker-1", "worker-2")
	}
	c.procs["worker-1"].kill()
	submit("writer")
}

// scraped waits until Prometheus has found services of ours, and no other targets.
func (c *composed) scraped(services ...string) {
	c.t.Helper()
	var want []string
	for _, s := range services {
		ours := c.file.Services[s]
		want = append(want, c.here(s, ours.Environment["LONGSHORE_HTTP_ADDR"]))
	}
	slices.Sort(want)
	var up, down []string
	eventually(c.t, "all targets are up", func() bool {
		_, body := c.get("http://" + c.at("prometheus", "9090") + "/api/v1/targets?state=active")
		var reply struct {
			Data struct {
				ActiveTargets []struct {
					Labels    map[string]string `json:"labels"`
					Health    string            `json:"health"`
					LastError string            `json:"lastError"`
				} `json:"activeTargets"`
			} `json:"data"`
		}
		if json.Unmarshal([]byte(body), &reply) != nil {
			return false
		}
		up, down = nil, nil
		for _, a := range reply.Data.ActiveTargets {
			if a.Health == "up" {
				up = append(up, a.Labels["instance"])
			} else {
				down = append(down, a.Labels["instance"]+" "+a.LastError)
			}
		}
		slices.Sort(up)
		return slices.Equal(slices.Compact(up), want) && len(down) == 0
	})
	_, rules := c.get("http://" + c.at("prometheus", "9090") + "/api/v1/rules")
	if strings.Contains(rules, `"health":"err"`) {
		c.t.Errorf("a rule fails: %s", rules)
	}
}
