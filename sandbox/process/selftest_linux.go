//go:build amd64 || arm64

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/sandbox/process/confine"
)

// proof is one child of the self-test: what confines it, and what that must stop.
type proof struct {
	layer      Layers
	setup      confine.Setup
	everything bool // of all layers together
	judge      func(confine.Tried) error
}

// prove finds out which layers this machine enforces: it starts a child for each, which tries to break out, and then one that
// all of them confine. It returns why others are missing. An error means that the test itself failed.
func (n *Native) prove(ctx context.Context) (reasons []string, err error) {
	dir, err := os.MkdirTemp(n.cfg.Temp, "longshore-")
	if err != nil {
		return nil, fmt.Errorf("prove the sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	canary := filepath.Join(dir, "canary")
	temp := filepath.Join(dir, "temp")
	if err := errors.Join(os.WriteFile(canary, []byte("reachable"), 0o600), os.Mkdir(temp, 0o700)); err != nil {
		return nil, fmt.Errorf("prove the sandbox: %w", err)
	}
	n.abi = confine.ABI()
	miss := func(l Layers, err error) {
		text := err.Error()
		if u, ok := errors.AsType[*UnavailableError](err); ok {
			text = strings.Join(u.Reasons, "; ")
		}
		reasons = append(reasons, l.String()+": "+text)
	}
	for _, p := range n.proofs() {
		if os.Geteuid() == 0 && !p.setup.Namespaces && !n.layers.Has(LayerNamespaces) {
			n.layers = 0
			miss(always, errors.New("programs never run as user 0, which only namespaces can avoid here: run the worker as another user"))
			return reasons, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("prove the sandbox: %w", context.Cause(ctx))
		}
		p.setup.ABI, p.setup.Temp, p.setup.TempSize = n.abi, temp, 1<<20
		p.setup.Probe = &confine.Probe{Canary: canary, Parent: os.Getpid()}
		if p.everything || os.Geteuid() == 0 { // as user 0 a child confines itself in namespaces only, where it is another user
			p.setup.Namespaces = p.setup.Namespaces || n.layers.Has(LayerNamespaces)
		}
		p.setup.Rlimits = tryRlimits(p.setup.Namespaces)
		tried, err := n.probe(p.setup)
		if err == nil {
			err = p.judge(tried)
		}
		switch {
		case err == nil:
			n.layers |= p.layer
		case p.everything:
			n.layers = 0
			miss(always, err)
		default:
			miss(p.layer, err)
		}
	}
	switch {
	case n.abi < 3:
		n.layers &^= LayerLandlock
		miss(LayerLandlock, fmt.Errorf("the kernel has version %d of Landlock; 3 is needed, and 6 without namespaces", n.abi))
	case n.abi < 6 && !n.layers.Has(LayerNamespaces):
		n.layers &^= LayerLandlock
		miss(LayerLandlock, fmt.Errorf("the kernel has version %d of Landlock; without namespaces 6 is needed", n.abi))
	}
	n.proveCgroup(miss)
	return reasons, nil
}

// proofs are the children of the self-test, in order.
func (n *Native) proofs() []proof {
	root := os.Geteuid() == 0
	var out []proof
	if !n.cfg.NoNamespaces {
		out = append(out,
			proof{layer: LayerNamespaces, setup: confine.Setup{Namespaces: true}, judge: func(t confine.Tried) error {
				return judged(t.PID == 1, "it sees other processes", t.Read == unix.ENOENT && t.Write == unix.ENOENT, "it sees files of the host")
			}},
			proof{layer: LayerProcesses, setup: confine.Setup{Namespaces: true, Limits: true}, judge: func(t confine.Tried) error {
				return judged(t.Fork == unix.EAGAIN, "it started more processes than it may, as the kernel lets a worker that is root")
			}})
	}
	return append(out,
		proof{layer: LayerLandlock, setup: confine.Setup{Landlock: true}, judge: func(t confine.Tried) error {
			return judged(t.Read != 0 && t.Write != 0, "it opened a file that no rule allows", root || n.abi < 6 || t.Kill == unix.EPERM, "it reached the worker")
		}},
		proof{layer: LayerSeccomp, setup: confine.Setup{Filter: packed(filter(true, false))}, judge: func(t confine.Tried) error {
			return judged(t.Socket == unix.EPERM, "it opened a socket", t.Ring == unix.EPERM, "it made an io_uring")
		}},
		proof{layer: LayerLimits, setup: confine.Setup{Limits: true}, judge: func(t confine.Tried) error {
			return judged(t.Files == unix.EMFILE, "it opened more files than it may")
		}},
		proof{everything: true, setup: confine.Setup{Landlock: true, Limits: true, Filter: packed(filter(true, false))}, judge: func(t confine.Tried) error {
			return judged(t.Read != 0 && t.Write != 0, "it opened a file of the worker", t.Socket == unix.EPERM && t.Ring == unix.EPERM, "it made a system call that is denied",
				t.Files == unix.EMFILE, "it opened more files than it may")
		}},
	)
}

// tryRlimits are those that the self-test tries to exceed.
func tryRlimits(namespaces bool) []confine.Rlimit {
	out := []confine.Rlimit{same(unix.RLIMIT_NOFILE, 32)}
	if namespaces {
		out = append(out, same(unix.RLIMIT_NPROC, 1))
	}
	return out
}

// judged returns the text after the first condition that does not hold.
func judged(pairs ...any) error {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[0] != true {
			return fmt.Errorf("in the self-test %v", pair[1])
		}
	}
	return nil
}

// probe runs one child of the self-test.
func (n *Native) probe(s confine.Setup) (tried confine.Tried, err error) {
	runtime.LockOSThread() // see start
	defer runtime.UnlockOSThread()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return tried, err
	}
	defer null.Close()
	c, err := n.start(launch{setup: &s, files: [3]*os.File{null, null, null}})
	if err != nil {
		return tried, err
	}
	r, _, err := c.ready()
	if err == nil && r.kind == confine.KindTried {
		err = json.Unmarshal(r.payload, &tried)
	}
	c.kill()
	_, reapErr := c.reap()
	return tried, errors.Join(err, reapErr, c.close())
}

// proveCgroup finds a cgroup for programs, and makes one in it.
func (n *Native) proveCgroup(miss func(Layers, error)) {
	dir, err := findCgroup(n.cfg.Cgroup)
	if err != nil {
		miss(LayerCgroup, err)
		return
	}
	n.cgroup = dir
	g, err := n.newGroup(n.cfg.Limits)
	if err == nil {
		err = g.close()
	}
	if err != nil {
		n.cgroup = ""
		miss(LayerCgroup, err)
		return
	}
	n.layers |= LayerCgroup | LayerProcesses
}
