package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// RoleVariable makes this binary one of the processes that a measurement consists of.
const RoleVariable = "LONGSHORE_BENCH_ROLE"

// Requests of the driver. Each gets one answer. The end of the input ends the child.
const (
	opSetup = "setup" // what it is to do; the answer comes when it is ready
	opStart = "start" // to work
	opUsage = "usage" // what it has used so far
	opRest  = "rest"  // to return the memory that it does not use
	opHeap  = "heap"  // to write what holds its memory to a file
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

// Process is a child, in the driver.
type Process struct {
	Role string

	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// KillGrace is how long a child may take to end by itself once its input is closed. A server with a thousand consumers takes a while.
const KillGrace = time.Minute

// Spawn starts a child and sets it up. When ctx ends its input is closed, so that it can end what it has started
// itself, and it is killed if that takes too long.
func Spawn(ctx context.Context, role string, args, ready any) (*Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), RoleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	cmd.Cancel, cmd.WaitDelay = in.Close, KillGrace
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	p := &Process{role, cmd, in, json.NewDecoder(out)}
	if err := p.ask(opSetup, args, ready); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// ask sends a request and waits for its answer, or for the end of the process. It is not for concurrent use.
func (p *Process) ask(op string, args, value any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	if err := json.NewEncoder(p.in).Encode(request{op, raw}); err != nil {
		return fmt.Errorf("ask %s to %s: %w", p.Role, op, err)
	}
	var a answer
	if err := p.out.Decode(&a); err != nil {
		return fmt.Errorf("ask %s to %s: %w", p.Role, op, err)
	}
	if a.Error != "" {
		return fmt.Errorf("%s: %s", p.Role, a.Error)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(a.Value, value); err != nil {
		return fmt.Errorf("read answer of %s: %w", p.Role, err)
	}
	return nil
}

// Start has the process begin its work.
func (p *Process) Start() error { return p.ask(opStart, nil, nil) }

// Rest has the process collect its garbage and return what it does not use to the system.
func (p *Process) Rest() error { return p.ask(opRest, nil, nil) }

// WriteHeap has the process write a profile of what it holds to a file. Without a file it does nothing.
func (p *Process) WriteHeap(file string) error {
	if file == "" {
		return nil
	}
	return p.ask(opHeap, file, nil)
}

// Usage asks what the process has used so far.
func (p *Process) Usage() (u Usage, err error) {
	err = p.ask(opUsage, nil, &u)
	return u, err
}

// Stop closes the input of the process and waits for its end; after a while it is killed.
func (p *Process) Stop() error {
	_ = p.in.Close() // fails only when it is closed
	kill := time.AfterFunc(KillGrace, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	err := p.cmd.Wait()
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) { // else it ended when told
		return fmt.Errorf("stop %s: %w", p.Role, err)
	}
	return nil
}
