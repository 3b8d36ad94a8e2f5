// Package confined runs the programs of tools: in the sandbox, with what the operator grants to a family of tools and the agent
// leaves of it. Hosts are reached through a proxy in the worker alone. The outcome of a program is reported to the model and, in more
// detail, to people.
package confined

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/sandbox/proxy"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/outbound"
)

// systemPath is where programs are looked up after Config.Path.
const systemPath = "/usr/local/bin:/usr/bin:/bin"

// Runner runs the programs of a family. Safe for concurrent use.
type Runner struct {
	cfg            Config
	run            process.Runner
	hosts, private hosts.List
	require        process.Layers
	limits         process.Limits
}

// New checks a configuration. The error is a *messages.FieldError.
func New(cfg Config, run process.Runner) (*Runner, error) {
	allowed, private, require, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if !allowed.Empty() {
		require |= process.LayerNamespaces
	}
	return &Runner{cfg: cfg, run: run, hosts: allowed, private: private, require: require, limits: cfg.Limits.process()}, nil
}

// Ready returns a *process.UnavailableError if programs cannot be confined as the configuration requires; then none runs.
func (r *Runner) Ready() error {
	if down, ok := r.run.(interface{ Ready() error }); ok {
		if err := down.Ready(); err != nil {
			return err
		}
	}
	if has := r.run.Layers(); !has.Has(r.require) {
		return &process.UnavailableError{Missing: r.require &^ has}
	}
	return nil
}

// Timeout is how long a call may take at most: it waits for its turn, and the program has its time.
func (r *Runner) Timeout() time.Duration {
	const turn = 30 * time.Second
	return turn + r.limits.Wall + 2*r.limits.Grace
}

// Program is one program to run.
type Program struct {
	Path    string // whole, or a name
	Args    []string
	Env     []string // NAME=value, which the tool decides and the model does not
	Dir     string   // below the workspace
	Stdin   []byte
	Folders []string // that it may read in addition to those of the configuration that the agent's grants leave
	Offline bool     // it reaches no host, whatever is granted
	Limits  process.Limits
	More    time.Duration // beyond its time, for a program that keeps to that by itself
}

// Ran is what came of a program.
type Ran struct {
	process.Result

	Limits process.Limits // of the program
	Hosts  []Host         // that it asked for
}

// Run runs a program for a call and waits for its end. An error means that it did not run: a *process.CommandError is for the
// model to correct, any other is the platform's.
func (r *Runner) Run(ctx context.Context, c *tools.Call, p Program) (Ran, error) {
	cmd := process.Command{
		Path: r.lookUp(p.Path), Args: p.Args, Env: slices.Concat(r.env(), p.Env), Dir: p.Dir, Stdin: p.Stdin, Workspace: c.Workspace,
		ReadOnly: apart(slices.Concat(r.cfg.Path, r.folders(&c.Grants), p.Folders)), Limits: r.limitsOf(c, p.Limits), Require: r.require, Begin: c.Begin,
	}
	if c.Output != nil {
		cmd.Output = func(_ process.Stream, text []byte) { c.Output(text) }
	}
	cmd.Limits.Wall += p.More
	asked := &ledger{}
	if !p.Offline && r.reachesAny(&c.Grants) {
		cmd.Proxy = func(l net.Listener) error {
			proxy.Serve(ctx, l, proxy.Config{
				Allow: r.allow(c), Guard: outbound.Guard(r.hosts, r.private), Report: asked.add, Total: cmd.Limits.Wall,
			})
			return nil
		}
	}
	res, err := r.run.Run(ctx, cmd)
	if err != nil {
		return Ran{}, err
	}
	if res.Reason == process.Canceled && ctx.Err() != nil {
		return Ran{}, context.Cause(ctx)
	}
	return Ran{Result: res, Limits: cmd.Limits, Hosts: asked.all()}, nil
}

// lookUp finds a name in the folders of the configuration. What is not there is left to the runner.
func (r *Runner) lookUp(name string) string {
	if strings.ContainsRune(name, '/') {
		return name
	}
	for _, dir := range r.cfg.Path {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return name
}

// env is the environment that the operator decides.
func (r *Runner) env() []string {
	out := []string{"PATH=" + strings.Join(append(slices.Clone(r.cfg.Path), systemPath), ":")}
	for name, value := range r.cfg.Env {
		out = append(out, name+"="+value)
	}
	slices.Sort(out[1:])
	return out
}

// folders are those that the agent's grants leave.
func (r *Runner) folders(g *messages.Grants) []string {
	return slices.DeleteFunc(slices.Clone(r.cfg.Folders), func(f string) bool { return !messages.Leaves(g.Folders, f) })
}

// apart leaves out what is below another one, or below a folder of the system, and so readable anyway.
func apart(paths []string) (out []string) {
	above := process.SystemFolders()
	for _, p := range slices.Sorted(slices.Values(paths)) { // a folder comes before what is in it
		if !slices.ContainsFunc(above, func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") }) {
			out, above = append(out, p), append(above, p)
		}
	}
	return out
}

// limitsOf keeps a program within the time of its call, so that its end can still be told.
func (r *Runner) limitsOf(c *tools.Call, own process.Limits) process.Limits {
	l := r.limits
	if own.Wall > 0 {
		l.Wall = min(l.Wall, own.Wall)
	}
	if own.Memory > 0 {
		l.Memory, l.AddressSpace = own.Memory, own.AddressSpace
	}
	if own.Output > 0 {
		l.Output = own.Output
	}
	if c.Timeout > 0 {
		l.Grace = min(l.Grace, c.Timeout/4)
		l.Wall = min(l.Wall, c.Timeout-2*l.Grace)
	}
	return l
}

// Wall is the time of a program that asks for some; 0: for all that it may have.
func (r *Runner) Wall(c *tools.Call, asked time.Duration) time.Duration {
	return r.limitsOf(c, process.Limits{Wall: asked}).Wall
}

// reachesAny reports whether a host is left that a program may reach.
func (r *Runner) reachesAny(g *messages.Grants) bool {
	return !r.hosts.Empty() && (g.Hosts == nil || len(g.Hosts) > 0)
}

// allow judges hosts by what the operator grants, the agent leaves, and the rules of the run forbid.
func (r *Runner) allow(c *tools.Call) func(endpoint, schemePort string) error {
	left, err := hosts.Parse(c.Grants.Hosts)
	return func(endpoint, schemePort string) error {
		listed := r.hosts.ListsPort
		if strings.HasSuffix(endpoint, ":"+schemePort) {
			listed = r.hosts.Lists
		}
		switch {
		case err != nil:
			return errors.New("grants.hosts of the agent cannot be read")
		case !listed(endpoint):
			return errors.New("the host " + endpoint + " is not one that the operator lists")
		case c.Grants.Hosts != nil && !left.Lists(endpoint):
			return errors.New("the host " + endpoint + " is not in the agent's grants")
		case c.Reach != nil:
			return c.Reach(endpoint)
		default:
			return nil
		}
	}
}
