package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// maxAsking bounds the runs that one list looks at: of more runs that once asked the oldest are forgotten.
const maxAsking = 10_000

// approvals lists the calls that wait for an approval. Events say which runs have asked; what they wait for now, their
// logs say.
func (s *Service) approvals(ctx context.Context, body []byte) (any, error) {
	var req messages.ApprovalsRequest
	if err := messages.Decode(body, &req); err != nil {
		return nil, err
	}
	req, err := req.Check()
	if err != nil {
		return nil, err
	}
	asking, more, err := s.asking(ctx, req.Tenant)
	if err != nil {
		return nil, err
	}
	list := messages.ApprovalList{Approvals: []messages.WaitingApproval{}, More: more}
	const frame = 1 << 10 // of a reply, beside the approvals
	room := int(s.cfg.Conn.MaxPayload()) - frame
	for _, run := range slices.Backward(asking) {
		w, err := s.waitingApproval(ctx, messages.Ref{Tenant: req.Tenant, Run: run})
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

// asking are the runs whose newest request for an approval nobody is known to have decided, those that asked first go first.
func (s *Service) asking(ctx context.Context, tenant string) (runs []string, more bool, err error) {
	open := map[string]uint64{} // number of the newest request
	read := func(name string, each func(e *messages.Event)) error {
		for e, err := range s.cfg.Bus.Events(ctx, "events."+tenant+".*."+name, time.Time{}) {
			if err != nil {
				return err
			}
			each(&e)
		}
		return nil
	}
	err = read(messages.EventApprovalRequested, func(e *messages.Event) {
		if open[e.Subject] == 0 {
			runs = append(runs, e.Subject)
		}
		open[e.Subject] = max(open[e.Subject], e.Number())
		if len(runs) > maxAsking {
			delete(open, runs[0])
			runs, more = runs[1:], true
		}
	})
	if err != nil {
		return nil, false, err
	}
	for _, name := range []string{messages.EventApprovalDecided, messages.EventRunFinished} {
		err = read(name, func(e *messages.Event) {
			if open[e.Subject] < e.Number() {
				delete(open, e.Subject)
			}
		})
		if err != nil {
			return nil, false, err
		}
	}
	return slices.DeleteFunc(runs, func(id string) bool { return open[id] == 0 }), more, nil
}

// waitingApproval is what a run waits with now; nil: nothing that must be approved.
func (s *Service) waitingApproval(ctx context.Context, ref messages.Ref) (*messages.WaitingApproval, error) {
	if !messages.ValidToken(ref.Run) { // whoever may publish events may name a run as he likes
		return nil, nil
	}
	last, ok, err := s.cfg.Keeper.Log.Last(ctx, ref)
	if err != nil || !ok || last.Head.Phase != messages.PhaseParked || last.Head.Waits != messages.ParkApproval {
		return nil, err
	}
	p, since, err := s.cfg.Keeper.Park(ctx, ref, last)
	if err != nil || p == nil || p.Approval == nil {
		return nil, err
	}
	a := p.Approval
	return &messages.WaitingApproval{
		Tenant: ref.Tenant, ID: ref.Run, Agent: a.Agent, Step: a.Step, Call: p.Call, Tool: a.Tool, Arguments: a.Arguments, Hash: a.Hash,
		Since: since, Until: p.Until,
	}, nil
}
