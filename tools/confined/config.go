package confined

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/sandbox/process"
)

// Config is what an operator grants to the programs of a family of tools, in addition to the run's own files.
type Config struct {
	Path    []string          `json:"path,omitzero"`    // folders in which programs are looked up before those of the system; programs may read them
	Folders []string          `json:"folders,omitzero"` // files and folders of the host that programs may read
	Env     map[string]string `json:"env,omitzero"`     // variables that every program gets; nothing else sets any
	Hosts   []string          `json:"hosts,omitzero"`   // that programs may reach, through a proxy; default none
	Private []string          `json:"private,omitzero"` // of the hosts: those that may lead to addresses beyond the open internet
	Require []string          `json:"require,omitzero"` // layers without which no program runs, in addition to those that are always required
	Limits  Limits            `json:"limits,omitzero"`
}

// Limits of one program; zero fields are the defaults of process.Limits.
type Limits struct {
	Time      messages.Duration `json:"time,omitzero"`
	CPU       messages.Duration `json:"cpu,omitzero"`
	Memory    int64             `json:"memory,omitempty"` // the sizes are bytes
	Processes int               `json:"processes,omitempty"`
	OpenFiles int               `json:"openFiles,omitempty"`
	FileSize  int64             `json:"fileSize,omitempty"`
	Temp      int64             `json:"temp,omitempty"`
	Output    int64             `json:"output,omitempty"`
}

// Bounds of Config.
const (
	maxListed    = 256
	maxPath      = 4 << 10
	maxVariable  = 256
	maxValue     = 4 << 10
	mostTime     = time.Hour
	mostMemory   = 64 << 30
	mostSize     = 64 << 30
	mostCount    = 1 << 16
	mostOutput   = 16 << 20
	leastMemory  = 16 << 20
	defaultGrace = 2 * time.Second
	defaultWall  = 30 * time.Second
)

func wrong(field, format string, args ...any) error {
	return &messages.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// check checks a configuration. The error is a *messages.FieldError.
func (c *Config) check() (allowed, private hosts.List, require process.Layers, err error) {
	for _, list := range []struct {
		field string
		paths []string
	}{{"path", c.Path}, {"folders", c.Folders}} {
		if err := checkPaths(list.field, list.paths); err != nil {
			return allowed, private, 0, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if err := checkVariable(name, c.Env[name]); err != nil {
			return allowed, private, 0, err
		}
	}
	if allowed, err = hosts.Parse(c.Hosts); err != nil {
		return allowed, private, 0, wrong("hosts", "%s", err.Error())
	}
	if private, err = hosts.Parse(c.Private); err != nil {
		return allowed, private, 0, wrong("private", "%s", err.Error())
	}
	if require, err = process.ParseLayers(c.Require); err != nil {
		return allowed, private, 0, wrong("require", "%s", strings.TrimPrefix(err.Error(), "require: "))
	}
	return allowed, private, require, c.Limits.check()
}

func checkPaths(field string, paths []string) error {
	if len(paths) > maxListed {
		return wrong(field, "more than %d", maxListed)
	}
	for i, path := range paths {
		at := fmt.Sprintf("%s[%d]", field, i)
		if err := strict.CheckText(at, path, maxPath); err != nil {
			return err
		}
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.Contains(path, ":") {
			return wrong(at, "must be a whole path such as /opt/go/bin, without .. and :")
		}
		if path == "/" || path == "/proc" || strings.HasPrefix(path, "/proc/") {
			return wrong(at, "must not be / or below /proc: name what programs need")
		}
	}
	return nil
}

func checkVariable(name, value string) error {
	field := "env." + strict.Shown(name)
	if name == "" || len(name) > maxVariable || name[0] >= '0' && name[0] <= '9' ||
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return wrong(field, "the name must be letters, digits and _")
	}
	return strict.CheckText(field, value, maxValue)
}

func (l *Limits) check() error {
	for _, d := range []struct {
		field string
		value messages.Duration
	}{{"time", l.Time}, {"cpu", l.CPU}} {
		if d.value != 0 && (time.Duration(d.value) < time.Second || time.Duration(d.value) > mostTime) {
			return wrong("limits."+d.field, "must be 1s to %v", mostTime)
		}
	}
	for _, n := range []struct {
		field              string
		value, least, most int64
	}{
		{"memory", l.Memory, leastMemory, mostMemory},
		{"processes", int64(l.Processes), 1, mostCount},
		{"openFiles", int64(l.OpenFiles), 16, mostCount},
		{"fileSize", l.FileSize, 1, mostSize},
		{"temp", l.Temp, 1, mostSize},
		{"output", l.Output, 1, mostOutput},
	} {
		if n.value != 0 && (n.value < n.least || n.value > n.most) {
			return wrong("limits."+n.field, "must be %d to %d", n.least, n.most)
		}
	}
	return nil
}

// process is the limits as a runner takes them.
func (l *Limits) process() process.Limits {
	out := process.Limits{
		Wall: time.Duration(l.Time), Grace: defaultGrace, CPU: time.Duration(l.CPU), Memory: l.Memory, Processes: l.Processes,
		OpenFiles: l.OpenFiles, FileSize: l.FileSize, Temp: l.Temp, Output: l.Output,
	}
	if out.Wall == 0 {
		out.Wall = defaultWall
	}
	if out.CPU == 0 { // a program that computes may use all of its time
		out.CPU = out.Wall
	}
	if l.Memory > 0 {
		out.AddressSpace = l.Memory + addressRoom
	}
	return out
}

// addressRoom is how many more addresses than memory a program may reserve: runtimes with a garbage collector reserve much.
const addressRoom = 4 << 30
