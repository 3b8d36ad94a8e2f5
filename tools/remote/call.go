package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// Headers of a call.
const (
	KeyHeader      = "Idempotency-Key"    // the same on every attempt of a call
	DeadlineHeader = "Longshore-Deadline" // RFC 3339 in UTC with milliseconds: after it no answer counts
	TimeoutHeader  = "Longshore-Timeout"  // until then, in milliseconds, for programs whose clock may be wrong
	TenantHeader   = "Longshore-Tenant"
	RunHeader      = "Longshore-Run"
)

// Headers of an error of a micro service.
const (
	errorHeader = "Nats-Service-Error"
	codeHeader  = "Nats-Service-Error-Code"
)

// standing is how a tool stands.
type standing int32

const (
	lost      standing = iota // no program serves it
	served                    // as the operator takes it
	changed                   // a program defines it in another way
	ambiguous                 // a call would reach several programs
)

func (s standing) String() string {
	return [...]string{"not served", "served", "disabled: its definition is not the one that the operator takes", "disabled: its programs are not in one queue group, so that a call would be made several times"}[s]
}

// tool is one that other programs serve. Safe for concurrent use.
type tool struct {
	nc      *nats.Conn
	def     *Definition
	bytes   int // of an answer, at most
	timeout time.Duration

	standing atomic.Int32
	missed   atomic.Int32 // looks in which no program answered, one after the other
}

// Spec implements tools.Tool.
func (t *tool) Spec() messages.ToolSpec { return t.def.spec() }

var _ tools.Presence = (*tool)(nil)

// Present implements tools.Presence: it reports whether programs serve the tool as the operator takes it.
func (t *tool) Present() bool { return standing(t.standing.Load()) == served }

// Retry implements tools.Retrier.
func (*tool) Retry() tools.Retry {
	return tools.Retry{Retries: 3, First: 300 * time.Millisecond, Most: 3 * time.Second}
}

// answer is what a program sends.
type answer struct {
	Text  string                     `json:"text"`
	Error bool                       `json:"error,omitempty"` // the program could not do it, and Text says why
	Meta  map[string]json.RawMessage `json:"meta,omitempty"`  // for people and programs, not for the model
}

// Call implements tools.Tool. It asks one program, once.
func (t *tool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	if s := standing(t.standing.Load()); s == changed || s == ambiguous {
		r := tools.Failure(fmt.Sprintf("The tool %s is %s. Only the operator can change that.", t.def.Name, s))
		r.Code = messages.CodePolicy
		return r, nil
	}
	m := nats.NewMsg(Prefix + t.def.Name)
	m.Data = c.Arguments
	m.Header.Set(KeyHeader, c.Key)
	m.Header.Set(TenantHeader, c.Run.Tenant)
	m.Header.Set(RunHeader, c.Run.Run)
	ctx, stop := context.WithTimeout(ctx, t.timeout)
	defer stop()
	end, _ := ctx.Deadline()
	m.Header.Set(DeadlineHeader, end.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	m.Header.Set(TimeoutHeader, strconv.FormatInt(max(time.Until(end), 0).Milliseconds(), 10))
	reply, err := ask(ctx, t.nc, m)
	switch {
	case err == nil:
		return t.read(reply), nil
	case errors.Is(err, nats.ErrNoResponders):
		return t.nothing("is not served by any program now"), nil
	case errors.Is(err, nats.ErrMaxPayload):
		return tools.Failure("The arguments are larger than a message may be. Nothing was done."), nil
	case errors.Is(err, errUnsent):
		return t.nothing("cannot be reached now"), nil
	case ctx.Err() != nil:
		return tools.Result{}, context.Cause(ctx) // a Set says what that means for the effect
	default:
		return t.unclear("cannot be reached any longer"), nil
	}
}

// read is the result of an answer, which may be anything.
func (t *tool) read(reply *nats.Msg) tools.Result {
	if text := reply.Header.Get(errorHeader); text != "" || reply.Header.Get(codeHeader) != "" {
		code := reply.Header.Get(codeHeader)
		r := tools.Failure(strict.Clip(fmt.Sprintf("The tool %s failed: %s (%s)", t.def.Name, tools.Plain(text), tools.Plain(code)), maxError))
		r.Transient = code == "429" || code == "503" // which say, by the contract, that nothing was done
		return r
	}
	if len(reply.Data) > t.bytes {
		return t.unclear(fmt.Sprintf("answered with %d bytes, and an answer may have %d", len(reply.Data), t.bytes))
	}
	var a answer
	if err := strict.Decode(reply.Data, &a); err != nil {
		return t.unclear("answered with something else than the contract says: " + strict.Clip(tools.Plain(err.Error()), maxError))
	}
	r := tools.Text(tools.Plain(a.Text))
	if a.Error {
		r = tools.Failure(tools.Plain(a.Text))
	}
	r.Meta = map[string]any{"bytes": len(reply.Data)}
	for key, value := range a.Meta {
		r.Meta[key] = value
	}
	return r
}

// maxError bounds what an error of a program tells.
const maxError = 2 << 10

// nothing is a failure of which nothing came.
func (t *tool) nothing(why string) tools.Result {
	r := tools.Failure(fmt.Sprintf("The tool %s %s. Nothing was done.", t.def.Name, why))
	r.Transient = true
	return r
}

// unclear is a failure after which the effect may have been there.
func (t *tool) unclear(why string) tools.Result {
	text := fmt.Sprintf("The tool %s %s.", t.def.Name, why)
	switch t.def.Effect {
	case messages.EffectOnce:
		r := tools.Failure(text + " It may or may not have taken effect; check before you repeat it.")
		r.Code = messages.CodeToolUnknownOutcome
		return r
	case messages.EffectIdempotent:
		return tools.Failure(text + " It may have taken effect; repeating it does no harm.")
	default:
		return tools.Failure(text)
	}
}
