// Package dispatcher is the Go client that backends import: submit tasks, watch them, take their results, cancel
// them. It speaks NATS alone and links no more than the client library and the contract.
//
//	nc, err := nats.Connect("nats://127.0.0.1:4222")
//	client, err := dispatcher.New(ctx, nc)
//	id, err := client.Submit(ctx, messages.Task{Input: messages.TextInput("Say hello.")})
//	for event, err := range client.Watch(ctx, dispatcher.Run(id)) { … }
//	result, err := client.Result(ctx, dispatcher.Run(id))
//
// A submit is one publish and durable when it returns; everything that reads or changes a run's log is done by the
// dispatcher process on request.
package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Errors that callers branch on.
var (
	// ErrNotFound means that there is no such run.
	ErrNotFound = control.ErrNotFound
	// ErrRemoved is an ErrNotFound: the run has ended, and was removed after its retention.
	ErrRemoved error = removedError{}
	// ErrConflict means that the id is taken by another task.
	ErrConflict = control.ErrConflict
	// ErrEnded means that the run has ended and cannot be changed.
	ErrEnded = control.ErrEnded
	// ErrNotEnded means that the run has no result yet.
	ErrNotEnded = control.ErrNotEnded
	// ErrUnavailable means that no dispatcher answers.
	ErrUnavailable = errors.New("no dispatcher answers")
	// ErrUnknownAgent means that a task names an agent that is not defined.
	ErrUnknownAgent = messages.ErrUnknownAgent
	// ErrUnknownPrompt means that a prompt, or the version of it that was asked for, is not in the store.
	ErrUnknownPrompt = messages.ErrUnknownPrompt
	// ErrRevision means that something was changed since the revision that a change was made for.
	ErrRevision = messages.ErrRevision
)

type removedError struct{}

func (removedError) Error() string { return control.RunRemoved }

func (removedError) Is(target error) bool { return target == ErrNotFound }

// requestTimeout bounds a request whose context has no deadline.
const requestTimeout = 10 * time.Second

// Client talks to a fleet. Safe for concurrent use. It does not own its connection.
type Client struct {
	nc *nats.Conn

	queue   *taskqueue.Queue
	agents  *catalog.Catalog
	batches *batches.Store
	logs    *logentries.Store
	events  *events.Store

	tenant string // that it is bound to; empty: none
	within Answerer
	remote *remote // nil: it speaks NATS

	unlimited unlimited
}

// Run names a run of the default tenant.
func Run(id string) messages.Ref { return messages.Ref{Tenant: messages.DefaultTenant, Run: id} }

// New checks that the fleet's streams are there. Connect with bus.Connect, or with nats.Connect and options of your
// own: without nats.ReconnectBufSize(-1) a publish may be stored after Submit reported it failed.
func New(ctx context.Context, nc *nats.Conn) (*Client, error) {
	b, err := bus.Open(ctx, nc, bus.Config{})
	if err != nil {
		return nil, err
	}
	return NewOn(nc, b), nil
}

// NewOn is New for a process that has opened its Bus already: the client reads with the rights and the keys of that.
func NewOn(nc *nats.Conn, b *bus.Bus) *Client {
	c := &Client{nc: nc}
	c.on(b)
	return c
}

// on lets the client read from a bus.
func (c *Client) on(b *bus.Bus) {
	c.queue, c.agents, c.batches, c.logs, c.events = taskqueue.New(b), catalog.New(b), batches.New(b), logentries.New(b), events.New(b)
}

// Answerer answers requests in this process: the dispatcher's service.
type Answerer interface {
	// Answer answers a request on a subject of the service. What it refuses is a *messages.Problem.
	Answer(ctx context.Context, subject string, request []byte, from control.Caller) ([]byte, error)
}

// NewWithin is NewOn for the process of a dispatcher: requests go to its own service, without a way over NATS, and agents
// are those that the process remembers.
func NewWithin(nc *nats.Conn, b *bus.Bus, agents *catalog.Catalog, service Answerer) *Client {
	c := NewOn(nc, b)
	c.agents, c.within = agents, service
	return c
}

// Submit publishes a task and returns its id once it is stored; then it will end in exactly one terminal state, or
// wait visibly for something. An absent id, tenant, agent or priority gets its default. The same task with the same
// id may be submitted again: it is one run. A field that is wrong is a *messages.FieldError; ErrConflict says that
// the id belongs to another task, ErrRateLimited that the tenant's quota is used up for now. Transient failures are retried
// with the same id until ctx ends.
func (c *Client) Submit(ctx context.Context, t messages.Task) (id string, err error) {
	signTask(ctx, &t)
	fresh := t.ID == ""
	if fresh {
		t.ID = messages.NewID(time.Now())
	}
	t.SetDefaults()
	if err := t.Validate(); err != nil {
		return "", err
	}
	if c.remote != nil {
		return c.remote.submit(ctx, &t)
	}
	if t.Webhook != nil || t.NamesFiles() || c.tenant != "" { // whether a webhook may be called, and a content is stored, the dispatchers know
		return c.submitOverDispatcher(ctx, &t)
	}
	if _, err := c.agents.Agent(ctx, t.Agent); err != nil {
		return "", fmt.Errorf("agent: %w", err)
	}
	admitted := t.ID
	if fresh {
		admitted = ""
	}
	if err := c.admit(ctx, t.Tenant, admitted); err != nil {
		return "", err
	}
	if t.Delay(time.Now()) > 0 {
		return c.submitLater(ctx, &t)
	}
	duplicate, err := c.queue.Submit(ctx, &t, fresh)
	if err != nil {
		return t.ID, fmt.Errorf("submit %s: %w", t.ID, err)
	}
	if !duplicate {
		return t.ID, nil
	}
	req := control.VerifyRequest{Tenant: t.Tenant, ID: t.ID, Fingerprint: t.Fingerprint()}
	var reply control.SubmitReply
	if err := c.request(ctx, control.SubjectVerify, req, &reply); err != nil {
		return "", fmt.Errorf("submit %s: %w", t.ID, err)
	}
	return reply.ID, nil
}

func (c *Client) submitOverDispatcher(ctx context.Context, t *messages.Task) (string, error) {
	var reply control.SubmitReply
	if err := c.request(ctx, control.SubjectSubmit, t, &reply); err != nil {
		if _, wrong := errors.AsType[*messages.FieldError](err); wrong {
			return "", err
		}
		return t.ID, fmt.Errorf("submit %s: %w", t.ID, err)
	}
	return reply.ID, nil
}

// Watch yields every durable event of a run once and in order, from the first one, then as they come, and ends after
// run_finished. It may be called before the run exists. A pause that is longer than what the stream keeps shows as
// an event of type longshore.events_expired.v1. It ends with an error when ctx ends.
func (c *Client) Watch(ctx context.Context, run messages.Ref) iter.Seq2[messages.Event, error] {
	if err := run.Check(); err != nil {
		return func(yield func(messages.Event, error) bool) { yield(messages.Event{}, err) }
	}
	if c.remote != nil {
		return c.remote.watch(ctx, run)
	}
	return c.events.Watch(ctx, run)
}

// Live yields the replies of a run while they are written, from now on, until ctx ends; then its error comes. It is
// for people's eyes: messages may be lost, as their numbers show, and a slow consumer loses them. A
// messages.LiveReply puts them together; message_end of the same step, in Watch, brings the reply whole.
func (c *Client) Live(ctx context.Context, run messages.Ref) iter.Seq2[messages.Live, error] {
	if c.remote != nil {
		return c.remote.live(ctx, run)
	}
	return c.events.Live(ctx, run)
}

// Status tells what a run is up to. ErrNotFound: it was never submitted, or is long gone.
func (c *Client) Status(ctx context.Context, run messages.Ref) (*control.RunStatus, error) {
	return ask[control.RunStatus](ctx, c, control.SubjectStatus, control.RunRequest{Tenant: run.Tenant, ID: run.Run})
}

// Result returns the whole result of a run that has ended, and ErrNotEnded before.
func (c *Client) Result(ctx context.Context, run messages.Ref) (*messages.AgentResult, error) {
	return c.resultOf(ctx, control.ResultRequest{Tenant: run.Tenant, ID: run.Run})
}

func (c *Client) resultOf(ctx context.Context, req control.ResultRequest) (*messages.AgentResult, error) {
	return ask[messages.AgentResult](ctx, c, control.SubjectResult, req)
}

// Wait waits until a run has ended and returns its result. It may be called before the run exists.
func (c *Client) Wait(ctx context.Context, run messages.Ref) (*messages.AgentResult, error) {
	if err := run.Check(); err != nil {
		return nil, err
	}
	for c.remote == nil {
		began := time.Now()
		result, err := c.waitOnce(ctx, run)
		switch {
		case err == nil, errors.Is(err, ErrRemoved):
			return result, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, ErrNotEnded) && !errors.Is(err, ErrNotFound) {
			break // no dispatcher, or one that does not wait: the events say when the run has ended
		}
		if err := bus.Pause(ctx, waitEvery-time.Since(began)); err != nil { // too many wait there
			return nil, err
		}
	}
	for _, err := range c.Watch(ctx, run) {
		if err != nil {
			return nil, err
		}
	}
	return c.Result(ctx, run)
}

// waitEvery is how soon a dispatcher is asked again that does not wait.
const waitEvery = time.Second

// waitOnce asks a dispatcher for a result, which answers when there is one or its time is over.
func (c *Client) waitOnce(ctx context.Context, run messages.Ref) (*messages.AgentResult, error) {
	ctx, cancel := context.WithTimeout(ctx, control.MaxResultWait+requestTimeout)
	defer cancel()
	return c.resultOf(ctx, control.ResultRequest{Tenant: run.Tenant, ID: run.Run, Wait: messages.Duration(control.MaxResultWait)})
}

// Cancel asks a run to stop. When it returns, the request is recorded and will be obeyed; a queued run has ended
// already. ErrEnded: the run had ended before, nothing changes.
func (c *Client) Cancel(ctx context.Context, run messages.Ref, reason string) (*control.RunStatus, error) {
	return ask[control.RunStatus](ctx, c, control.SubjectCancel, control.CancelRequest{Tenant: run.Tenant, ID: run.Run, Reason: reason})
}

// ErrNotSteered means that a run was not told: it has not begun or has ended, was told too much, or something else
// under the same control id. The error says which.
var ErrNotSteered = control.ErrNotSteered

// Steer tells a run something, which the model reads before its next call; what is in progress is not aborted, and a run that
// waits keeps waiting. When it returns nil the message is recorded. S.Tenant and s.ID are those of run; s.Control makes it
// safe to repeat.
func (c *Client) Steer(ctx context.Context, run messages.Ref, s control.SteerRequest) (*control.RunStatus, error) {
	s.Tenant, s.ID = run.Tenant, run.Run
	return ask[control.RunStatus](ctx, c, control.SubjectSteer, s)
}

// Fork makes a new run that begins with the steps of another one before f.At, which is made anew, perhaps with another
// agent or model; f.Tenant and f.ID are those of run. What tools did in the steps that are kept is not done again, and
// the run starts with the files that they saved. It is stored when this returns; the same fork with the same f.NewID
// may be asked for again. ErrConflict: that id is taken, or the run has not begun.
func (of Runs) Fork(ctx context.Context, run messages.Ref, f control.ForkRequest) (*control.ForkReply, error) {
	f.Tenant, f.ID = run.Tenant, run.Run
	if f.NewID == "" {
		f.NewID = messages.NewID(time.Now()) // so that a lost answer leaves one run
	}
	return ask[control.ForkReply](ctx, of.client, control.SubjectFork, f)
}

// ask makes a request and returns its reply.
func ask[Reply any](ctx context.Context, c *Client, subject string, req any) (*Reply, error) {
	var reply Reply
	if err := c.request(ctx, subject, req, &reply); err != nil {
		return nil, err
	}
	return &reply, nil
}

// request asks the dispatcher, by the subject of an operation of Longshore's own.
func (c *Client) request(ctx context.Context, subject string, req, reply any) error {
	o := control.Of(subject)
	if o == nil {
		return fmt.Errorf("%s: no such operation", subject)
	}
	return c.Call(ctx, o, req, reply)
}

// Call makes the request of an operation, over NATS or HTTP as the client does: req is of the operation's type Asks, and reply a
// pointer to its type Reply. Without a deadline in ctx it waits ten seconds.
//
// An error of the dispatcher's is a failure that the operation declares, ErrNotFound, a *messages.FieldError or a
// *messages.Problem. A client that is bound to a tenant returns ErrBound for what tenants may not ask.
func (c *Client) Call(ctx context.Context, o *control.Operation, req, reply any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	answer, err := c.Ask(ctx, o, body)
	if err != nil {
		return meaning(o, err)
	}
	if err := strict.DecodePeer(answer, reply); err != nil {
		return fmt.Errorf("read the dispatcher's reply: %w", err)
	}
	return nil
}

// Ask is Call with the request and the reply as JSON. What the dispatcher refuses is a *messages.Problem.
func (c *Client) Ask(ctx context.Context, o *control.Operation, request json.RawMessage) (json.RawMessage, error) {
	if _, bounded := ctx.Deadline(); !bounded && (c.remote == nil || !o.Waits) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
		defer cancel()
	}
	switch {
	case c.remote != nil:
		return c.remote.ask(ctx, o, request)
	case o.Subject == "":
		return nil, fmt.Errorf("%s is a request over HTTP alone: set LONGSHORE_URL", o.ID)
	case c.within != nil && !c.nc.IsConnected(): // the service would wait for the connection, as long as it may
		return nil, fmt.Errorf("ask the dispatcher (%s): %w", o.Subject, nats.ErrReconnectBufExceeded)
	case c.within != nil && !o.Everywhere:
		return c.within.Answer(ctx, o.Subject, request, callerOf(ctx))
	default:
		return c.askNATS(ctx, o, request)
	}
}

// askNATS asks the dispatchers' micro service: one of them answers.
func (c *Client) askNATS(ctx context.Context, o *control.Operation, request json.RawMessage) (json.RawMessage, error) {
	subject, err := c.subject(o)
	if err != nil {
		return nil, err
	}
	msg, err := c.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: request, Header: requestHeader(ctx)})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("%w: is `longshore dispatcher` running?", ErrUnavailable)
	case err != nil:
		return nil, fmt.Errorf("ask the dispatcher (%s): %w", subject, err)
	case msg.Header.Get("Nats-Service-Error-Code") == "":
		return msg.Data, nil
	}
	var p messages.Problem
	if err := strict.DecodePeer(msg.Data, &p); err != nil {
		return nil, fmt.Errorf("the dispatcher refused: %s", strict.Clip(msg.Header.Get("Nats-Service-Error"), 200))
	}
	return nil, &p
}

// meaning is an error that callers branch on, where a problem is one: what the operation declares, or what any may answer.
func meaning(o *control.Operation, err error) error {
	if p, ok := errors.AsType[*messages.Problem](err); ok && p.Code == messages.CodeNotFound && p.Detail == control.RunRemoved {
		return ErrRemoved
	}
	return cmp.Or(o.Meaning(err), named(err))
}

// named is the meaning of a problem that any operation may answer.
func named(err error) error {
	p, ok := errors.AsType[*messages.Problem](err)
	switch {
	case !ok:
		return err
	case p.Code == messages.CodeNotFound && strings.HasPrefix(p.Detail, ErrNoFile.Error()):
		return &noFileError{p}
	case p.Code == messages.CodeNotFound:
		return ErrNotFound
	case p.Code == messages.CodeUnknownAgent:
		return fmt.Errorf("%w: %w", ErrUnknownAgent, p)
	case p.Field != "":
		return &messages.FieldError{Field: p.Field, Reason: p.Detail}
	default:
		return p
	}
}

// conflictAs gives a conflict the name that it has for this request, where its operation does not say it.
func conflictAs(err, name error) error {
	var p *messages.Problem
	if errors.As(err, &p) && p.Code == messages.CodeConflict {
		return fmt.Errorf("%w: %w", name, p)
	}
	return err
}
