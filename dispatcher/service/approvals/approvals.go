// Package approvals lists what waits for a person, and records what people decide.
package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Config is what Approvals works with.
type Config struct {
	Controller *runlog.Controller
	Semaphores *semaphores.Store // of which one holds the runs that wait for a person
	Runs       *runs.Runs
	Room       request.Room
	Redact     func(string) string // nil: nothing is a secret
}

// Approvals lists what waits for a person, and records what people decide.
type Approvals struct{ cfg Config }

// New returns Approvals.
func New(cfg Config) *Approvals { return &Approvals{cfg} }

// Handlers are the requests about approvals and questions.
func (ap *Approvals) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectApprovals: request.Read(ap.approvals),
		control.SubjectApprove:   request.Read(ap.approve),
		control.SubjectDeny:      request.Read(ap.deny),
		control.SubjectAnswer:    request.Read(ap.answerQuestion),
	}
}

// maxAsking bounds the runs that one list looks at: of more runs that wait, those that have waited longest are left out.
const maxAsking = 10_000

// approvals lists the calls that wait for an approval. A list of the bus says which runs wait for a person; what they
// wait for now, their logs say. The cost grows with what waits, not with what has ended.
func (ap *Approvals) approvals(ctx context.Context, req control.ApprovalsRequest) (any, error) {
	req, err := req.Check()
	if err != nil {
		return nil, err
	}
	asking, more, err := ap.asking(ctx, req.Tenant)
	if err != nil {
		return nil, err
	}
	list := control.ApprovalList{Approvals: []control.WaitingApproval{}, More: more}
	const frame = 1 << 10 // of a reply, beside the approvals
	room := ap.cfg.Room.Beside(frame)
	for _, asks := range slices.Backward(asking) {
		w, err := ap.waitingApproval(ctx, asks)
		if err != nil {
			return nil, err
		}
		if w == nil {
			continue
		}
		size, err := json.Marshal(w)
		if err != nil {
			return nil, fmt.Errorf("encode approval: %w", err)
		}
		room -= len(size) + 1
		if len(list.Approvals) == req.Limit || room < 0 {
			list.More = true
			break
		}
		list.Approvals = append(list.Approvals, *w)
	}
	return list, nil
}

// asking are the runs that wait for a person, those that have waited longest first.
func (ap *Approvals) asking(ctx context.Context, tenant string) (runs []semaphores.Standing, more bool, err error) {
	for r, err := range ap.cfg.Semaphores.Standing(ctx, queue.PeopleList, tenant) {
		if err != nil {
			return nil, false, err
		}
		if r.Run.Check() != nil { // a worker may write any subject
			continue
		}
		if runs = append(runs, r); len(runs) > maxAsking {
			runs, more = runs[1:], true
		}
	}
	return runs, more, nil
}

// waitingApproval is what a run waits with now; nil: nothing that must be approved.
func (ap *Approvals) waitingApproval(ctx context.Context, asks semaphores.Standing) (*control.WaitingApproval, error) {
	ref := asks.Run
	last, ok, err := ap.cfg.Controller.AsksAt(ctx, ref, asks.At)
	if err != nil || !ok || last.Head.Waits != queue.ParkApproval {
		return nil, err
	}
	p, since, err := ap.cfg.Controller.Park(ctx, ref, last)
	if err != nil || p == nil || p.Approval == nil {
		return nil, err
	}
	a := p.Approval
	return &control.WaitingApproval{
		Tenant: ref.Tenant, ID: ref.Run, Agent: a.Agent, Step: a.Step, Call: p.Call, Tool: a.Tool, Arguments: a.Arguments, Hash: a.Hash, Editable: a.Editable,
		Since: since, Until: p.Until,
	}, nil
}
