//go:build amd64 || arm64

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/sandbox/process/confine"
)

// Bounds of a command.
const (
	mostArgs  = 4096
	mostBytes = 128 << 10 // of all arguments, and of the environment; the kernel takes no longer argument
)

// setup checks a command and returns what its child is told, but for the workspace and the temporary folder.
func (n *Native) setup(c Command) (*confine.Setup, error) {
	path, err := n.lookup(c)
	if err != nil {
		return nil, err
	}
	if err := checkStrings("args", c.Args); err != nil {
		return nil, err
	}
	if err := checkReadOnly(c.ReadOnly); err != nil {
		return nil, err
	}
	if c.Dir != "" && (c.Workspace == nil || !fs.ValidPath(c.Dir) || strings.ContainsRune(c.Dir, 0)) {
		return nil, &CommandError{Field: "dir", Reason: clip(c.Dir) + " is not a folder below the workspace"}
	}
	env, err := environ(c, n.cfg.Path)
	if err != nil {
		return nil, err
	}
	l := c.Limits.or(n.cfg.Limits)
	s := &confine.Setup{
		Namespaces: n.layers.Has(LayerNamespaces), Landlock: true, Limits: true, ABI: n.abi,
		Path: path, Args: append([]string{c.Path}, c.Args...), Env: env,
		Dir: c.Dir, ReadOnly: slices.Concat(n.cfg.ReadOnly, c.ReadOnly), TempSize: l.Temp, Proxy: c.Proxy != nil,
	}
	s.MaxPID = reservedPIDs + l.Processes + supervisorThreads + 1
	s.Rlimits, s.Filter = rlimits(l, s.Namespaces), packed(filter(!s.Namespaces, s.Proxy))
	return s, nil
}

// lookup finds the program. A relative path with a slash is looked up by the kernel, from the working directory.
func (n *Native) lookup(c Command) (string, error) {
	if c.Path == "" || strings.ContainsRune(c.Path, 0) || len(c.Path) > unix.PathMax {
		return "", &CommandError{Field: "path", Reason: "must name a program"}
	}
	if strings.Contains(c.Path, "/") {
		return c.Path, nil
	}
	for dir := range strings.SplitSeq(n.cfg.Path, ":") {
		path := filepath.Join(dir, c.Path)
		info, err := os.Stat(path)
		if filepath.IsAbs(path) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &CommandError{Field: "path", Reason: "there is no program " + clip(c.Path) + " on this machine"}
}

func checkStrings(field string, list []string) error {
	if len(list) > mostArgs {
		return &CommandError{Field: field, Reason: "has more than " + strconv.Itoa(mostArgs) + " elements"}
	}
	total := 0
	for _, s := range list {
		if strings.ContainsRune(s, 0) {
			return &CommandError{Field: field, Reason: "has a null character"}
		}
		total += len(s) + 1
	}
	if total > mostBytes {
		return &CommandError{Field: field, Reason: "is longer than " + strconv.Itoa(mostBytes) + " bytes"}
	}
	return nil
}

func checkReadOnly(paths []string) error {
	for _, path := range paths {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsRune(path, 0) {
			return &CommandError{Field: "readOnly", Reason: clip(path) + " must be an absolute path without .., and not the whole file system"}
		}
	}
	return nil
}

// environ is all that a program gets.
func environ(c Command, path string) ([]string, error) {
	if err := checkStrings("env", c.Env); err != nil {
		return nil, err
	}
	vars := map[string]string{"PATH": path, "LANG": "C.UTF-8", "HOME": confine.TempAt, "TMPDIR": confine.TempAt}
	if c.Proxy != nil {
		for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"} {
			vars[name] = "http://127.0.0.1:" + strconv.Itoa(confine.ProxyPort)
		}
	}
	for _, pair := range c.Env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, &CommandError{Field: "env", Reason: clip(name) + " is not NAME=value"}
		}
		vars[name] = value
	}
	var out []string
	for name, value := range vars {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out, nil
}

// rlimits are the limits of each process. The kernel counts processes by user, but in a user namespace those of the namespace.
func rlimits(l Limits, namespaces bool) []confine.Rlimit {
	cpu := uint64((l.CPU + time.Second - 1) / time.Second)
	out := []confine.Rlimit{
		same(unix.RLIMIT_CORE, 0),
		same(unix.RLIMIT_NOFILE, uint64(l.OpenFiles)),
		same(unix.RLIMIT_FSIZE, uint64(l.FileSize)),
		{Resource: unix.RLIMIT_CPU, Soft: cpu, Max: cpu + 1},
		same(unix.RLIMIT_MEMLOCK, 0), same(unix.RLIMIT_MSGQUEUE, 0), same(unix.RLIMIT_RTPRIO, 0), same(unix.RLIMIT_NICE, 0),
	}
	if namespaces {
		out = append(out, same(unix.RLIMIT_NPROC, uint64(l.Processes+supervisorThreads)))
	}
	return append(out, same(unix.RLIMIT_DATA, uint64(l.Memory)), same(unix.RLIMIT_AS, uint64(l.AddressSpace)))
}

func same(resource int, value uint64) confine.Rlimit {
	return confine.Rlimit{Resource: resource, Soft: value, Max: value}
}

// notStarted is the error of a program that the kernel refused to start.
func notStarted(path string, f confine.Failed) error {
	errno := unix.Errno(f.Errno)
	switch {
	case errors.Is(errno, unix.ENOENT):
		return &CommandError{Field: "path", Reason: clip(path) + " is not in the sandbox, or what it is run by is not"}
	case errors.Is(errno, unix.EACCES), errors.Is(errno, unix.ENOEXEC), errors.Is(errno, unix.ENOTDIR), errors.Is(errno, unix.E2BIG):
		return &CommandError{Field: "path", Reason: clip(path) + " cannot be run: " + errno.Error()}
	}
	return failed(f)
}

// failed is the error of a step that the child could not do.
func failed(f confine.Failed) error {
	if f.Step == confine.StepDir {
		return &CommandError{Field: "dir", Reason: "is not a folder of the workspace, without symbolic links: " + f.Text}
	}
	return &UnavailableError{Reasons: []string{f.Step + ": " + f.Text}}
}

// reservedPIDs are the numbers that the kernel gives no process once it has come to the largest: from then on, so many fewer may run.
const reservedPIDs = 300

// supervisorThreads are those of the process that supervises a program in namespaces, which count as well.
const supervisorThreads = 12
