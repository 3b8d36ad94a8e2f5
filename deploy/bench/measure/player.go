package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
)

// Player is a role, in the child. All of its methods are called by one goroutine.
type Player interface {
	Setup(ctx context.Context, args json.RawMessage) (ready any, err error)
	Start(ctx context.Context) error
	Usage(ctx context.Context) (Usage, error)
	Stop() error // waits for what Start began
}

// Play answers the driver's requests in a role of players until the driver closes the input.
func Play(ctx context.Context, players map[string]Player, role string, in io.Reader, out io.Writer) (err error) {
	p := players[role]
	if p == nil {
		return fmt.Errorf("%s: %q is not a role", RoleVariable, role)
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
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

func perform(ctx context.Context, p Player, r request) (any, error) {
	switch r.Op {
	case opSetup:
		return p.Setup(ctx, r.Args)
	case opStart:
		return nil, p.Start(ctx)
	case opRest:
		debug.FreeOSMemory()
		return nil, nil
	case opHeap:
		var file string
		if err := json.Unmarshal(r.Args, &file); err != nil {
			return nil, fmt.Errorf("read the name of a file: %w", err)
		}
		return nil, profileTo("heap", file)
	case opUsage:
		return p.Usage(ctx)
	default:
		return nil, fmt.Errorf("unknown request %q", r.Op)
	}
}
