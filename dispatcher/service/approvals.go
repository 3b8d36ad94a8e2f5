package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxAsking bounds the runs that one list looks at: of more runs that wait, those that have waited longest are left out.
const maxAsking = 10_000

// approvals lists the calls that wait for an approval. A line says which runs wait for a person; what they wait for now,
// their logs say. It costs what waits, not what has ended.
func (s *Service) approvals(ctx context.Context, body []byte) (any, error) {
	var req control.ApprovalsRequest
	if err := strict.Decode(body, &req); err != nil {
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
	list := control.ApprovalList{Approvals: []control.WaitingApproval{}, More: more}
	const frame = 1 << 10 // of a reply, beside the approvals
	room := int(s.cfg.Conn.MaxPayload()) - frame
	for _, asks := range slices.Backward(asking) {
		w, err := s.waitingApproval(ctx, asks)
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
func (s *Service) asking(ctx context.Context, tenant string) (runs []semaphores.Standing, more bool, err error) {
	for r, err := range s.stores.semaphores.Standing(ctx, messages.PeopleList, tenant) {
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
func (s *Service) waitingApproval(ctx context.Context, asks semaphores.Standing) (*control.WaitingApproval, error) {
	ref := asks.Run
	last, ok, err := s.cfg.Controller.AsksAt(ctx, ref, asks.At)
	if err != nil || !ok || last.Head.Waits != messages.ParkApproval {
		return nil, err
	}
	p, since, err := s.cfg.Controller.Park(ctx, ref, last)
	if err != nil || p == nil || p.Approval == nil {
		return nil, err
	}
	a := p.Approval
	return &control.WaitingApproval{
		Tenant: ref.Tenant, ID: ref.Run, Agent: a.Agent, Step: a.Step, Call: p.Call, Tool: a.Tool, Arguments: a.Arguments, Hash: a.Hash,
		Since: since, Until: p.Until,
	}, nil
}
