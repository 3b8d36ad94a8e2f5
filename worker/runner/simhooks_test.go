package runner_test

import (
	"context"
	"errors"
	"hash/fnv"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/runner"
)

// A fifth of the seeds have hooks at every point that the loop waits for. A process may die while one is asked. They
// refuse a quarter of the calls and fail now and then.
func (p *process) hooks() (out []runner.Hook) {
	if p.w.seed%5 != 2 {
		return nil
	}
	for _, point := range messages.HookPoints() {
		if point == messages.HookOnTokens {
			continue // what runs concurrently with the loop has no defined order
		}
		out = append(out, runner.Hook{On: point, Func: func(_ context.Context, c messages.HookCall) (messages.HookAnswer, error) {
			if err := p.op("hook " + c.ID); err != nil {
				return messages.HookAnswer{}, err
			}
			switch {
			case point == messages.HookPreTool && refused(c.Tool.ID):
				return messages.HookAnswer{Decision: messages.HookDeny}, nil
			case !point.Decides() && oneIn(3, c.ID):
				return messages.HookAnswer{}, errors.New("no")
			default:
				return messages.HookAnswer{}, nil
			}
		}})
	}
	return out
}

func refused(call string) bool { return oneIn(4, call) }

func oneIn(n uint32, s string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()%n == 0
}
