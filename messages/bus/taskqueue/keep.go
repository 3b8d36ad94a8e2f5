package taskqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/strict"
)

// keepWait is how long the owner of a run has to answer. One that is stopped does not, and one that is dead is known to be
// at once: nothing listens for it.
const keepWait = time.Second

// keepInbox ends the subject of the answers.
const keepInbox = ".keep"

// maxPromised bounds the answers that a worker remembers until the delivery is handed to it.
const maxPromised = 1 << 16

// ErrSilent means that the owner of a run does not answer: it is dead, stopped or cut off.
var ErrSilent = errors.New("the run's owner does not answer")

// keepRequest asks a worker whether it works a run by a ticket and, with Reply, to take over a newer delivery of it.
type keepRequest struct {
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
	Claim  string `json:"claim"`
	Ticket uint64 `json:"ticket"`
	Reply  string `json:"reply,omitempty"`
	// Offer: the run is not the worker's; it is asked for a free slot instead.
	Offer bool `json:"offer,omitempty"`
}

type keepAnswer struct {
	Works bool `json:"works"`
}

// Owner is a worker that others ask about its runs. Its methods are called one at a time and must be quick.
type Owner interface {
	// Works reports whether the run is worked here, under the claim and by the ticket.
	Works(run messages.Ref, claim string, ticket uint64) bool
	// Take takes over a newer delivery of a ticket, if it is in hand; false: it is not.
	Take(run messages.Ref, d *Delivery) bool
	// Room reports whether there is a free slot for a ticket that is not in hand.
	Room(run messages.Ref, ticket uint64) bool
	// Adopt works a delivery that has come without its message, which Load reads; false: there is no slot any longer.
	Adopt(d *Delivery) bool
}

// ServeOwner answers for a worker until ctx ends.
func (tq *Queue) ServeOwner(ctx context.Context, life string, ackWait time.Duration, o Owner) error {
	if !strict.ValidToken(life) {
		return &messages.FieldError{Field: "id", Reason: "must be a token"}
	}
	type ticket struct { // as the run's partition numbers it
		run messages.Ref
		seq uint64
	}
	promised := map[ticket]time.Time{} // since when a worker that asked knows that it is ours
	sub, err := tq.bus.Conn().Subscribe(messages.KeepPrefix+life, func(m *nats.Msg) {
		var answer keepAnswer
		req, stream, err := tq.decodeKeep(m)
		of := ticket{req.ref(), req.Ticket}
		switch {
		case err != nil:
			tq.bus.Log().WarnContext(ctx, "a worker's question about a run is left out", "err", err)
			return
		case req.Reply == "":
			if answer.Works = req.welcome(o); answer.Works {
				if len(promised) >= maxPromised { // of those that never came back; the others ask again
					clear(promised)
				}
				promised[of] = time.Now()
			}
		default:
			at, ok := promised[of]
			delete(promised, of)
			if ok && req.welcome(o) {
				d := &Delivery{Stream: stream, Seq: req.Ticket, queue: tq, reply: req.Reply, ackWait: ackWait, since: at}
				if answer.Works = req.Offer && o.Adopt(d); !req.Offer {
					answer.Works = o.Take(req.ref(), d)
				}
			}
		}
		body, err := json.Marshal(answer)
		if err == nil {
			err = m.Respond(body)
		}
		if err != nil {
			tq.bus.Log().WarnContext(ctx, "answer a worker's question about a run", "err", err)
		}
	})
	if err != nil {
		return fmt.Errorf("answer on %s: %w", messages.KeepPrefix+life, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	<-ctx.Done()
	return nil
}

// welcome reports whether the delivery belongs here.
func (r *keepRequest) welcome(o Owner) bool {
	if r.Offer {
		return o.Room(r.ref(), r.Ticket)
	}
	return o.Works(r.ref(), r.Claim, r.Ticket)
}

func (r *keepRequest) ref() messages.Ref { return messages.Ref{Tenant: r.Tenant, Run: r.Run} }

// decodeKeep checks a request. Its Reply is published to, so it must be that of a delivery of the ticket, which is in the stream of its run.
func (tq *Queue) decodeKeep(m *nats.Msg) (r keepRequest, stream string, err error) {
	if m.Reply == "" {
		return r, "", errors.New("it has no reply subject")
	}
	if err := strict.Decode(m.Data, &r); err != nil {
		return r, "", fmt.Errorf("read it: %w", err)
	}
	if err := r.ref().Check(); err != nil {
		return r, "", fmt.Errorf("read it: %w", err)
	}
	stream = tq.tasks().NameOf(r.ref())
	if r.Reply == "" {
		return r, stream, nil
	}
	meta, err := (&nats.Msg{Reply: r.Reply, Sub: m.Sub}).Metadata()
	if err != nil {
		return r, "", fmt.Errorf("read its delivery: %w", err)
	}
	if _, ok := bus.LaneOfConsumer(meta.Consumer); !ok || meta.Stream != stream || meta.Sequence.Stream != r.Ticket {
		return r, "", errors.New("its delivery is of another message")
	}
	return r, stream, nil
}

// HandOver asks the owner of a claim, by its life, whether it works the run. If it does, it is given this delivery, which
// the caller must not touch from then on, and HandOver returns true. ErrSilent: it did not answer. It takes a second at most
// if the owner is silent.
func (d *Delivery) HandOver(ctx context.Context, life string, run messages.Ref, claim string) (bool, error) {
	return d.handTo(ctx, life, keepRequest{Tenant: run.Tenant, Run: run.Run, Claim: claim, Ticket: d.Seq})
}

// Offer gives this delivery to another worker, by its life, if that has a free slot. If it returns true the caller must not
// touch the delivery from then on: the other worker has it, or it comes again after the ack wait. It takes two seconds at
// most if the other is silent, which is ErrSilent.
func (d *Delivery) Offer(ctx context.Context, life string, run messages.Ref) (bool, error) {
	return d.handTo(ctx, life, keepRequest{Tenant: run.Tenant, Run: run.Run, Ticket: d.Seq, Offer: true})
}

func (d *Delivery) handTo(ctx context.Context, life string, req keepRequest) (bool, error) {
	if works, err := d.queue.askOwner(ctx, life, req); err != nil || !works {
		return false, err
	}
	// The owner counts its lease from its answer, which came before this renewal.
	if err := d.Renew(ctx); err != nil || d.Lapsed() {
		return true, nil //nolint:nilerr // the message comes again, and is handed over then
	}
	req.Reply = d.reply
	works, err := d.queue.askOwner(ctx, life, req)
	if errors.Is(err, ErrSilent) { // it was alive a moment ago; it may have got it
		return true, nil
	}
	return works, err
}

func (tq *Queue) askOwner(ctx context.Context, life string, req keepRequest) (bool, error) {
	if !strict.ValidToken(life) {
		return false, ErrSilent
	}
	body, err := json.Marshal(req)
	if err != nil {
		return false, fmt.Errorf("encode question about a run: %w", err)
	}
	in, err := bus.OpenInboxAt(tq.bus.Conn(), tq.bus.Conn().NewInbox()+keepInbox, bus.AnswerRoom) // workers may answer there, and in no other inbox of a worker
	if err != nil {
		return false, err
	}
	defer in.Close()
	if err := tq.bus.Conn().PublishRequest(messages.KeepPrefix+life, in.Sub.Subject, body); err != nil {
		return false, fmt.Errorf("ask worker %s: %w", life, err)
	}
	m, err := in.Next(ctx, keepWait)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil || m.Header.Get(bus.StatusHeader) == bus.StatusNoResponders:
		return false, ErrSilent
	}
	var answer keepAnswer
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return false, fmt.Errorf("read a worker's answer: %w", err)
	}
	return answer.Works, nil
}
