package dispatcher

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"iter"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Errors of batches that callers branch on.
var (
	// ErrNoBatch means that there is no such batch.
	ErrNoBatch = control.ErrNoBatch
	// ErrBatchInvalid means that lines were refused, so nothing was run.
	ErrBatchInvalid = errors.New("the batch has invalid lines: nothing was run")
)

// BatchOf names a batch of the default tenant.
func BatchOf(id string) messages.BatchRef {
	return messages.BatchRef{Tenant: messages.DefaultTenant, ID: id}
}

// BatchSpec says what to submit.
type BatchSpec struct {
	messages.BatchRef                                // the tenant's default is "default"; without an id the batch gets a new one
	messages.BatchSettings                           // its expiry counts from its first attempt
	Template               *messages.BatchTemplate   // of the lines' tasks; nil: each line holds its own
	Refused                func(*messages.LineError) // called for each invalid line; may be nil
	Progress               func(lines int)           // called with how many lines were read; may be nil
	Estimate               bool                      // CheckBatch says what past runs cost, which takes up to 10 seconds
}

// SetDefaults gives a batch its tenant and id.
func (s *BatchSpec) SetDefaults() {
	if s.Tenant == "" {
		s.Tenant = messages.DefaultTenant
	}
	if s.ID == "" {
		s.ID = messages.NewID(time.Now())
	}
}

// Submit reads lines, as ReadLines yields them, and stores them; then the dispatchers run them. No task runs before the last line
// was read: if Submit returns an error, no task of the batch runs, unless the answer to the very last request was lost. In any case
// the same lines may be submitted again with the same id: each custom_id becomes one task. If the settings are valid, the returned
// reference is valid even with an error.
//
// ErrBatchInvalid: lines were wrong, and SkipInvalid is not set; the batch is failed and names the first of them.
// ErrConflict: the id is that of another batch, or another client is submitting this one now.
func (of Batches) Submit(ctx context.Context, spec BatchSpec, lines iter.Seq2[Line, error]) (*messages.Batch, error) {
	spec.SetDefaults()
	if err := errors.Join(spec.BatchRef.Check(), spec.BatchSettings.Check(time.Now())); err != nil {
		return nil, err
	}
	if of.client.remote != nil {
		return of.client.remote.submitBatch(ctx, &spec, lines)
	}
	open := control.BatchOpen{BatchRef: spec.BatchRef, BatchSettings: spec.BatchSettings, Submitter: messages.NewID(time.Now())}
	var head messages.Batch
	if err := of.client.request(ctx, control.SubjectBatchOpen, open, &head); err != nil {
		return nil, fmt.Errorf("open batch %s: %w", spec.ID, err)
	}
	in := &intake{client: of.client, spec: &spec, store: head.Cursor.Submitter == open.Submitter}
	seal, err := in.take(ctx, lines)
	if err != nil {
		return &head, fmt.Errorf("submit batch %s: %w", spec.ID, err)
	}
	seal.Submitter = open.Submitter
	if err := of.client.request(ctx, control.SubjectBatchSeal, seal, &head); err != nil {
		return &head, fmt.Errorf("submit batch %s: %w", spec.ID, err)
	}
	if head.Status == messages.BatchFailed {
		return &head, ErrBatchInvalid
	}
	return &head, nil
}

// Check reads lines as SubmitBatch does, and submits nothing. Tokens are a rough count of what the tasks' texts
// are, at four bytes each. With spec.Estimate the costs of past runs say what the batch would cost, where a dispatcher
// with an index of runs tells them; that they are unknown is no error.
func (of Batches) Check(ctx context.Context, spec BatchSpec, lines iter.Seq2[Line, error]) (*BatchCheck, error) {
	spec.SetDefaults()
	if err := errors.Join(spec.BatchRef.Check(), spec.BatchSettings.Check(time.Now())); err != nil {
		return nil, err
	}
	if of.client.remote != nil {
		return of.client.remote.checkBatch(ctx, &spec, lines)
	}
	in := &intake{client: of.client, spec: &spec}
	seal, err := in.take(ctx, lines)
	if err != nil {
		return nil, err
	}
	check := &BatchCheck{Lines: seal.Lines, Invalid: seal.Invalid, Tokens: in.bytes / bytesPerToken, Errors: seal.Errors}
	if spec.Estimate && seal.Lines > 0 {
		check.Cost = in.estimate(ctx)
		if err := ctx.Err(); errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("estimate the cost: %w", err)
		}
	}
	return check, nil
}

const bytesPerToken = 4

// BatchCheck is what a batch would be.
type BatchCheck struct {
	Lines   int                  `json:"lines"`          // that are right
	Invalid int                  `json:"invalid"`        // that are wrong
	Tokens  int64                `json:"tokens"`         // of the inputs, roughly
	Cost    *BatchCost           `json:"cost,omitempty"` // only with BatchSpec.Estimate, and when a line is right
	Errors  []messages.LineError `json:"errors,omitempty"`
}

// intake takes the lines of a batch in. What it keeps of each is a hash and a number.
type intake struct {
	client *Client
	spec   *BatchSpec
	store  bool // else the lines are only looked at

	seen   map[[16]byte]int32 // line by custom_id
	agents map[string]error
	lines  map[string]int // that are right, by agent
	more   int            // lines of agents that are not in it: maxAgents are
	digest hash.Hash
	bytes  int64
	out    control.BatchSeal
	writer *batches.Writer
	stored *storedLines
}

func (in *intake) take(ctx context.Context, lines iter.Seq2[Line, error]) (control.BatchSeal, error) {
	in.seen, in.agents, in.lines, in.digest = map[[16]byte]int32{}, map[string]error{}, map[string]int{}, sha256.New()
	in.out.BatchRef = in.spec.BatchRef
	if in.store {
		var err error
		if in.writer, err = in.client.batches.Write(in.spec.BatchRef); err != nil {
			return in.out, err
		}
		defer in.writer.Close()
		in.stored = readStored(ctx, in.client.batches, in.spec.BatchRef)
		defer in.stored.close()
	}
	for line, err := range lines {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return in.out, fmt.Errorf("read the lines: %w", err)
		}
		if err := in.line(ctx, &line); err != nil {
			return in.out, err
		}
		if in.spec.Progress != nil {
			in.spec.Progress(line.Number)
		}
	}
	in.out.Digest = hex.EncodeToString(in.digest.Sum(nil))
	if !in.store {
		return in.out, nil
	}
	if err := in.stored.drop(ctx); err != nil { // of an earlier attempt with more lines
		return in.out, err
	}
	return in.out, in.writer.Flush(ctx)
}

// line takes one line. An error is not the line's: it ends the submission.
func (in *intake) line(ctx context.Context, l *Line) error {
	if in.out.Lines+in.out.Invalid >= messages.MaxBatchLines {
		return &messages.FieldError{Field: "lines", Reason: fmt.Sprintf("are more than %d", messages.MaxBatchLines)}
	}
	if l.Long {
		in.refuse(l, "", &messages.FieldError{Reason: fmt.Sprintf("longer than %d bytes", messages.MaxBatchLine)})
		return nil
	}
	customID, task, err := messages.DecodeBatchLine(in.spec.BatchRef, l.Data, in.spec.Template)
	if err != nil {
		in.refuse(l, customID, err)
		return nil
	}
	if first, again := in.first(customID, l.Number); again {
		in.refuse(l, customID, &messages.FieldError{Field: "custom_id", Reason: fmt.Sprintf("is that of line %d too", first)})
		return nil
	}
	unknown, err := in.agent(ctx, task.Agent)
	if err != nil {
		return err
	}
	if unknown != nil {
		in.refuse(l, customID, unknown)
		return nil
	}
	signTask(ctx, task)
	return in.accept(ctx, &messages.BatchLine{Line: l.Number, CustomID: customID, Task: *task})
}

// first remembers where a custom_id stands.
func (in *intake) first(customID string, number int) (first int32, again bool) {
	key := [16]byte(hashed(customID))
	first, again = in.seen[key]
	if !again {
		in.seen[key] = int32(number)
	}
	return first, again
}

func hashed(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:16]
}

// maxAgents bounds how many agents a submission remembers.
const maxAgents = 1024

// agent reports whether an agent is unknown. An error is one of looking.
func (in *intake) agent(ctx context.Context, name string) (unknown, err error) {
	if unknown, known := in.agents[name]; known {
		return unknown, nil
	}
	_, err = in.client.agents.Agent(ctx, name)
	if err != nil && !errors.Is(err, messages.ErrUnknownAgent) {
		return nil, fmt.Errorf("agent: %w", err)
	}
	if len(in.agents) < maxAgents {
		in.agents[name] = err
	}
	return err, nil
}

func (in *intake) refuse(l *Line, customID string, why error) {
	e := messages.LineError{Line: l.Number, CustomID: customID, Code: messages.CodeInvalidInput, Message: strict.Clip(why.Error(), maxLineMessage)}
	var field *messages.FieldError
	switch {
	case errors.As(why, &field):
		e.Field, e.Message = field.Field, field.Reason
	case errors.Is(why, messages.ErrUnknownAgent):
		e.Code, e.Field = messages.CodeUnknownAgent, "agent"
	}
	in.out.Invalid++
	if len(in.out.Errors) < messages.MaxBatchErrors {
		in.out.Errors = append(in.out.Errors, e)
	}
	if in.spec.Refused != nil {
		in.spec.Refused(&e)
	}
}

// maxLineMessage bounds the message about a line, in bytes.
const maxLineMessage = 512

func (in *intake) accept(ctx context.Context, l *messages.BatchLine) error {
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode line %d: %w", l.Line, err)
	}
	in.out.Lines++
	in.countAgent(l.Task.Agent)
	in.bytes += int64(l.Task.Input.Size() + len(l.Task.Context))
	sum := sha256.Sum256(body)
	in.digest.Write(sum[:])
	if !in.store {
		return nil
	}
	there, err := in.stored.next(ctx, body)
	if err != nil || there {
		return err
	}
	if err := in.writer.Add(ctx, l.Task.ID, body); err != nil {
		return fmt.Errorf("line %d: %w", l.Line, err)
	}
	return nil
}

// Get tells what a batch is up to. ErrNoBatch: it was never submitted, or is long gone.
func (of Batches) Get(ctx context.Context, ref messages.BatchRef) (*messages.Batch, error) {
	return ask[messages.Batch](ctx, of.client, control.SubjectBatchStatus, control.RunRequest(ref))
}

// List lists the batches of a tenant, newest first, at most 200; limit 0 is that too.
func (of Batches) List(ctx context.Context, tenant string, limit int) (*control.BatchList, error) {
	return ask[control.BatchList](ctx, of.client, control.SubjectBatchList, control.BatchListRequest{Tenant: tenant, Limit: limit})
}

// Cancel stops a batch: no more of its lines are begun, and those that run are asked to stop. When it returns
// that is recorded and will be done. ErrEnded: it had ended before.
func (of Batches) Cancel(ctx context.Context, ref messages.BatchRef, reason string) (*messages.Batch, error) {
	var head messages.Batch
	req := control.CancelRequest{Tenant: ref.Tenant, ID: ref.ID, Reason: reason}
	if err := of.client.request(ctx, control.SubjectBatchCancel, req, &head); err != nil {
		return nil, err
	}
	return &head, nil
}
