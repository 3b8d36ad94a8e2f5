//go:build unix

package fleet_test

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
)

// repository is the folder that the image is built from.
const repository = "../.."

// dockerfile is the instructions of the Dockerfile by their names, in order.
type dockerfile map[string][]string

func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	out := dockerfile{}
	lines := bufio.NewScanner(bytes.NewReader(repositoryFile(t, "Dockerfile")))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"FROM", "WORKDIR", "COPY", "RUN", "ARG", "USER", "ENV", "EXPOSE", "ENTRYPOINT", "CMD"}, name) {
			t.Errorf("the Dockerfile has the instruction %q", line)
		}
		out[name] = append(out[name], rest)
	}
	return out
}

func repositoryFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// env is the environment that the image gives its program.
func (d dockerfile) env() map[string]string {
	out := map[string]string{}
	for _, line := range d["ENV"] {
		for set := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(set, "=")
			out[name] = value
		}
	}
	return out
}

// The image is built from what the repository has, with the compiler that go.mod asks for.
func TestDockerfileBuild(t *testing.T) {
	t.Parallel()
	d := readDockerfile(t)
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(repositoryFile(t, "go.mod"))
	if want := []string{"golang:" + string(language[1]) + " AS build", "scratch"}; !slices.Equal(d["FROM"], want) {
		t.Errorf("stages from %q, want %q", d["FROM"], want)
	}
	for _, copied := range d["COPY"] {
		args := strings.Fields(copied)
		if strings.HasPrefix(args[0], "--") {
			continue // from the first stage
		}
		for _, from := range args[:len(args)-1] {
			if _, err := os.Stat(filepath.Join(repository, from)); err != nil {
				t.Errorf("COPY %s: %v", copied, err)
			}
		}
	}
	linked := regexp.MustCompile(`-X main\.(\w+)=`).FindStringSubmatch(strings.Join(d["RUN"], "\n"))
	if linked == nil || !regexp.MustCompile(`(?m)^var `+linked[1]+` = "`).Match(repositoryFile(t, "main.go")) {
		t.Errorf("the linker sets %q, which main.go does not have", linked)
	}
	for pattern := range strings.Lines(string(repositoryFile(t, ".dockerignore"))) {
		pattern = strings.TrimSpace(pattern)
		if pattern == "" || strings.HasPrefix(pattern, "#") {
			continue
		}
		_ = filepath.WalkDir(filepath.Join(repository, pattern), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && (strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "go.sum")) {
				t.Errorf("%s is left out of the build by %s", path, pattern)
			}
			return nil
		})
	}
}

// What the image says about its program is so: its variables, its port, its folders and its command.
func TestDockerfileProgram(t *testing.T) {
	t.Parallel()
	d := readDockerfile(t)
	env := d.env()
	reads := map[string]bool{}
	for _, v := range append(settings.Variables(settings.Dispatcher{}), settings.Variables(settings.Worker{})...) {
		reads[v.Name] = true
	}
	var set []string
	for name, value := range env {
		if strings.HasPrefix(name, "LONGSHORE_") && !reads[name] {
			t.Errorf("neither a dispatcher nor a worker reads %s", name)
		}
		// The only user of the image can write to a folder if the build made it.
		if strings.HasPrefix(value, "/") && !strings.Contains(strings.Join(d["RUN"], "\n"), " /room"+value+" ") {
			t.Errorf("%s=%s: the build does not make this folder", name, value)
		}
		set = append(set, name+"="+value)
	}
	if _, port, _ := strings.Cut(env["LONGSHORE_HTTP_ADDR"], ":"); !slices.Equal(d["EXPOSE"], []string{port}) {
		t.Errorf("it exposes %v, and listens on %s", d["EXPOSE"], env["LONGSHORE_HTTP_ADDR"])
	}
	var w settings.Worker
	if err := settings.Load(&w, append(set, "NATS_URL=nats://nats:4222", "REDIS_URL=redis://redis:6379", "OPENAI_API_KEY=k", "OPENAI_MODEL=m", "LONGSHORE_ENCRYPTION=off")); err != nil {
		t.Errorf("a worker of the image: %v", err)
	}
	var s settings.Dispatcher
	if err := settings.Load(&s, append(set, "NATS_URL=nats://nats:4222", "LONGSHORE_ENCRYPTION=off")); err != nil || !s.On() {
		t.Errorf("a dispatcher of the image: authentication is %q, %v", s.Auth, err)
	}
	command := regexp.MustCompile(`^\["(\w+)"\]$`).FindStringSubmatch(d["CMD"][0])
	if command == nil {
		t.Fatalf("CMD %s", d["CMD"])
	}
	if got := call(t, nil, command[1], "--help"); got.code != 0 || !strings.Contains(got.stdout, "longshore "+command[1]) {
		t.Errorf("longshore %s --help: %+v", command[1], got)
	}
}

// The fleet of the compose file is the one that the tests run and the documentation describes.
func TestComposeAgreesWithDocumentation(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	_, page, _ := strings.Cut(string(repositoryFile(t, "docs/operations.md")), "\n## With Docker Compose\n")
	page, _, _ = strings.Cut(page, "\n## ")
	about := string(repositoryFile(t, "deploy/compose.yaml"))
	about, _, _ = strings.Cut(about, "\nname:")
	for name, s := range c.Services {
		for _, p := range s.Ports {
			at := p[:strings.LastIndex(p, ":")]
			if !strings.Contains(page, "`"+at+"`") {
				t.Errorf("%s: docs/operations.md does not name %s", name, at)
			}
			if !strings.Contains(about, "//"+at+" ") {
				t.Errorf("%s: the comment of the compose file does not name %s", name, at)
			}
		}
	}
	for _, documented := range regexp.MustCompile("`(127\\.0\\.0\\.1:\\d+)`").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(string(repositoryFile(t, "deploy/compose.yaml")), `"`+documented[1]+":") {
			t.Errorf("docs/operations.md names %s, which no service publishes", documented[1])
		}
	}
	for volume := range c.Volumes {
		if !strings.Contains(page, "`"+volume+"`") {
			t.Errorf("docs/operations.md does not name the volume %s", volume)
		}
	}
	tested := regexp.MustCompile(`nats-server/v2 v(\d+\.\d+\.\d+)`).FindSubmatch(repositoryFile(t, "go.mod"))
	if image := c.Services["nats"].Image; !strings.HasPrefix(image, "nats:"+string(tested[1])+"-") {
		t.Errorf("the image is %s, and the tests run NATS %s", image, tested[1])
	}
	env := readDockerfile(t).env()
	for name, s := range c.Services {
		if !s.ours() {
			continue
		}
		for _, m := range s.mounts() {
			if m.volume && m.to != env["LONGSHORE_WORKSPACES"] && m.to != env["XDG_CACHE_HOME"] {
				t.Errorf("%s: the volume %s is mounted at %s, which the image's user cannot write to", name, m.from, m.to)
			}
		}
	}
}
