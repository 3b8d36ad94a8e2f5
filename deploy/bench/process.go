package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime/pprof"
	"time"
)

// Roles that this binary plays as a child of the driver.
const (
	roleServers = "servers"
	roleWorker  = "worker"
	roleFloor   = "floor"
)

// Requests of the driver. Each gets one answer. The end of the input ends the child.
const (
	opSetup = "setup" // what it is to do; the answer comes when it is ready
	opStart = "start" // to work
	opUsage = "usage" // what it has used so far
)

// request is one line from the driver, answer the line that comes back.
type (
	request struct {
		Op   string          `json:"op"`
		Args json.RawMessage `json:"args,omitempty"`
	}
	answer struct {
		Error string          `json:"error,omitempty"`
		Value json.RawMessage `json:"value,omitempty"`
	}
)

// process is a child, in the driver.
type process struct {
	role string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
}

// killGrace is how long a child may take to end by itself once its input is closed.
const killGrace = 10 * time.Second

// spawn starts a child and sets it up. When ctx ends its input is closed, so that it can end what it has started
// itself, and it is killed if that takes too long.
func (b *bench) spawn(ctx context.Context, role string, args, ready any) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	cmd.Cancel, cmd.WaitDelay = in.Close, killGrace
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	p := &process{role, cmd, in, json.NewDecoder(out)}
	if err := p.ask(opSetup, args, ready); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// ask sends a request and waits for its answer, or for the end of the process. It is not for concurrent use.
func (p *process) ask(op string, args, value any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	if err := json.NewEncoder(p.in).Encode(request{op, raw}); err != nil {
		return fmt.Errorf("ask %s to %s: %w", p.role, op, err)
	}
	var a answer
	if err := p.out.Decode(&a); err != nil {
		return fmt.Errorf("ask %s to %s: %w", p.role, op, err)
	}
	if a.Error != "" {
		return fmt.Errorf("%s: %s", p.role, a.Error)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(a.Value, value); err != nil {
		return fmt.Errorf("read answer of %s: %w", p.role, err)
	}
	return nil
}

// usage asks what the process has used so far.
func (p *process) usage() (u usage, err error) {
	err = p.ask(opUsage, nil, &u)
	return u, err
}

// stop closes the input of the process and waits for its end; after a while it is killed.
func (p *process) stop() error {
	_ = p.in.Close() // fails only when it is closed
	kill := time.AfterFunc(killGrace, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	err := p.cmd.Wait()
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) { // else it ended when told
		return fmt.Errorf("stop %s: %w", p.role, err)
	}
	return nil
}

// player is a role, in the child. All of its methods are called by one goroutine.
type player interface {
	setup(ctx context.Context, args json.RawMessage) (ready any, err error)
	start(ctx context.Context) error
	usage(ctx context.Context) (usage, error)
	stop() error // waits for what start began
}

// play answers the driver's requests until it closes the input.
func play(ctx context.Context, role string, in io.Reader, out io.Writer, log *slog.Logger) (err error) {
	players := map[string]player{
		roleServers: &serversRole{log: log}, roleWorker: &workerRole{log: log}, roleFloor: &floorRole{}, roleDispatcher: &dispatcherRole{log: log},
	}
	p := players[role]
	if p == nil {
		return fmt.Errorf("%s: %q is not a role", roleVariable, role)
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		var a answer
		v, err := perform(ctx, p, r)
		if err == nil {
			a.Value, err = json.Marshal(v)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
}

func perform(ctx context.Context, p player, r request) (any, error) {
	switch r.Op {
	case opSetup:
		return p.setup(ctx, r.Args)
	case opStart:
		return nil, p.start(ctx)
	case opUsage:
		return p.usage(ctx)
	default:
		return nil, fmt.Errorf("unknown request %q", r.Op)
	}
}

// profile writes a CPU profile of this process until stop is called, and then to file.allocs what it has allocated.
// Without a file it does nothing.
func profile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("write CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("write CPU profile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return errors.Join(f.Close(), profileAllocs(file+".allocs"))
	}, nil
}

func profileAllocs(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write profile of allocations: %w", err)
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
