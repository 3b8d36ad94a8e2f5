package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/memorylimit"
	"github.com/longshore-run/longshore/worker/model"
)

// How much memory a run takes, in bytes or as a multiple of its state.
const (
	heldByAny    = 64 << 10 // of each run in a slot: goroutines, buffers, connections
	heldByState  = 2        // the state, and what is made anew of it while it advances
	heldByTask   = 4        // of the message: the task, the first entry as JSON, sealed, and on its way
	heldByAppend = 4        // of what a run has grown by: the records, their entry as JSON, sealed, and its events
	heldByAsk    = 4        // of a conversation: the request as JSON, sealed, and kept for another try
	heldByReply  = 4        // of a reply: its pieces, the whole, without secrets, and the entry
)

const (
	// How much of a reply is counted before it comes, and then ahead of it.
	countedReply = 32 << 10
	// How long a run that has begun waits for memory before it is handed back, for a worker that has some.
	memoryWait = 2 * time.Minute
	// The same of one that has not, and holds nothing. Each time it is handed back is a delivery without a claim, too many of which end a run
	// unread. So after as many deliveries as a run has attempts it waits where it is; the heartbeat keeps its message.
	firstMemoryWait = 10 * time.Minute
)

// ErrNoMemory means that the runs of this worker held too much memory for too long for this one to continue here.
var ErrNoMemory = errors.New("the worker's memory is used up by other runs: raise LONGSHORE_MEMORY_LIMIT or lower LONGSHORE_SLOTS")

// footprint is what a run holds of its worker's memory. Only the execution's goroutine uses it. A nil footprint, and one without a share,
// counts nothing.
type footprint struct {
	*job

	state  func() *agent.State
	share  *memorylimit.Share
	listen func(s *agent.State, abort context.CancelCauseFunc) (end func()) // that of the execution

	asking  int64              // what it holds during the model call that was begun last, without the reply; written by before
	heard   replySize          // what of its reply is counted; written by before and reply
	calling int64              // what the calls hold that are on their way; written by calls and landed
	weights map[string]int64   // of each of them, by its id; written by calls
	denied  *messages.RunError // it asked for more than its share; written by exceeded
}

// counts reports whether anything is counted. A run that was denied is about to end, with what it holds.
func (x *footprint) counts() bool { return x != nil && x.share != nil && x.denied == nil }

// enter waits until there is memory for a run that begins.
func (x *footprint) enter(ctx context.Context) error {
	if !x.counts() {
		return nil
	}
	if x.ticket.Delivered <= x.cfg.MaxAttempts {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, firstMemoryWait, ErrNoMemory)
		defer stop()
	}
	return x.untilDrain(ctx, heldByAny+heldByTask*int64(len(x.ticket.Body)))
}

// rest is what the run holds between two actions, in a state.
func (x *footprint) rest(s *agent.State) int64 { return heldByAny + heldByState*s.Bytes() + x.calling }

// folded waits until there is memory for a state that is being read from the log, but not once the run is cancelled or its time is over: then
// its first plan ends it.
func (x *footprint) folded(ctx context.Context, s *agent.State) error {
	if !x.counts() || s.Task == nil {
		return nil
	}
	bytes := x.rest(s)
	if ok, _ := x.share.Try(bytes); ok {
		return nil
	}
	ctx, end := x.listening(ctx, s)
	defer end()
	if err := x.boundary(ctx, bytes); !errors.Is(err, errControl) {
		return err
	}
	return nil
}

// fits reports whether there is memory now for the append that leads to a state. An errControl means that the run must plan again.
func (x *footprint) fits(next *agent.State) (bool, error) {
	if !x.counts() || breaksOff(next) {
		return true, nil
	}
	ok, err := x.share.Try(x.appending(next))
	return ok, x.exceeded(err)
}

// breaksOff reports whether a run is about to end without an answer: that takes little more, and gives back all that it holds.
func breaksOff(next *agent.State) bool {
	return next.Result != nil && next.Result.Status != messages.StatusCompleted
}

// grow waits until fits is true. It ends with success at once when the plan changes: then the append conflicts, or what it decides ends the run.
// What is reported already is in memory, and is not lost for that: then it also ends with success when there is no memory for long, or the
// worker stops.
func (x *footprint) grow(ctx context.Context, next *agent.State, reported bool) error {
	ctx, end := x.listening(ctx, next)
	defer end()
	wait := x.boundary
	if reported {
		wait = x.amid
	}
	err := wait(ctx, x.appending(next))
	if errors.Is(err, errControl) && x.denied == nil || reported && (errors.Is(err, ErrNoMemory) || errors.Is(err, ErrShutdown)) {
		return nil
	}
	return err
}

func (x *footprint) appending(next *agent.State) int64 {
	return x.rest(next) + heldByAppend*max(0, next.Bytes()-x.state().Bytes())
}

// before waits until there is memory for an action. An errControl means that the run must plan again.
func (x *footprint) before(ctx context.Context, action agent.Action) error {
	if !x.counts() {
		return nil
	}
	bytes := x.rest(x.state())
	if a, ok := action.(*agent.CallModel); ok {
		bytes += heldByAsk * x.state().BytesOf(a)
		x.asking, x.heard = bytes, countedReply
		bytes += heldByReply * countedReply
	}
	if ok, err := x.share.Try(bytes); ok || err != nil {
		return x.exceeded(err)
	}
	if s := x.state(); s.Result != nil || s.Parked != nil { // it gives back all that it holds once that is settled
		return nil
	}
	ctx, end := x.listening(ctx, x.state())
	defer end()
	return x.boundary(ctx, bytes)
}

// listening returns a context that ends too when the execution's listen says so. End releases it.
func (x *footprint) listening(ctx context.Context, s *agent.State) (_ context.Context, end func()) {
	ctx, abort := context.WithCancelCause(ctx)
	unlisten := x.listen(s, abort)
	return ctx, func() {
		unlisten()
		abort(nil)
	}
}

// reply waits until there is memory for the reply that comes, which has so many bytes by now. An errControl means that the call is to be
// given up, and the run must plan again.
func (x *footprint) reply(ctx context.Context, bytes replySize) error {
	if !x.counts() || bytes <= x.heard {
		return nil
	}
	x.heard = bytes + countedReply
	return x.amid(ctx, x.asking+heldByReply*int64(x.heard))
}

// calls is before for calls of tools, each of which weighs something: it returns how many of them there is memory for, at least one.
func (x *footprint) calls(ctx context.Context, wave []agent.OpenCall, weigh func(messages.ToolCall) int64) (int, error) {
	if !x.counts() {
		return len(wave), nil
	}
	x.weights = map[string]int64{}
	for i := range wave {
		x.weights[wave[i].Call.ID] = weigh(wave[i].Call)
	}
	for n := len(wave); ; n-- {
		x.calling = 0
		for i := range wave[:n] {
			x.calling += x.weights[wave[i].Call.ID]
		}
		bytes := x.rest(x.state())
		if n == 1 {
			err := x.boundary(ctx, bytes)
			if err != nil {
				x.calling = 0
			}
			return n, err
		}
		if ok, err := x.share.Try(bytes); ok && err == nil {
			return n, nil
		}
	}
}

// landed says that a call is no longer on its way. What it holds is given back with the next append.
func (x *footprint) landed(call string) {
	if x.counts() {
		x.calling -= x.weights[call]
	}
}

// boundary waits where a run may be handed back: when there is no memory for long, or the worker drains.
func (x *footprint) boundary(ctx context.Context, bytes int64) error {
	ctx, stop := context.WithTimeoutCause(ctx, memoryWait, ErrNoMemory)
	defer stop()
	return x.untilDrain(ctx, bytes)
}

// amid waits where what was paid for would be lost with the run.
func (x *footprint) amid(ctx context.Context, bytes int64) error {
	ctx, stop := context.WithTimeoutCause(ctx, memoryWait, ErrNoMemory)
	defer stop()
	return x.exceeded(x.share.Hold(ctx, bytes))
}

// untilDrain waits until the run may hold so many bytes, ctx ends, or the worker drains, which is ErrShutdown.
func (x *footprint) untilDrain(ctx context.Context, bytes int64) error {
	if ok, err := x.share.Try(bytes); ok || err != nil {
		return x.exceeded(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-x.r.drain:
			cancel(ErrShutdown)
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel(nil)
		<-over
	}()
	x.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "run waits for memory of the worker", slog.String("tenant", x.run.Tenant), slog.String("task_id", x.run.Run),
		slog.Int64("bytes", bytes))
	return x.exceeded(x.share.Hold(ctx, bytes))
}

// exceeded denies a run that asked for more than its share, and is an errControl then.
func (x *footprint) exceeded(err error) error {
	more, ok := errors.AsType[*memorylimit.ExceededError](err)
	if !ok {
		return err
	}
	x.denied = &messages.RunError{Code: messages.CodeMemoryLimit, Message: fmt.Sprintf(
		"the run needs about %d MiB of its worker's memory, more than the %d MiB that one run may have: let tools return less, or make fewer calls, "+
			"or have the operator raise LONGSHORE_MEMORY_LIMIT", mebibytes(more.Bytes), mebibytes(more.Share))}
	return errControl
}

func mebibytes(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// maxReply bounds the text, the reasoning and the tool calls of one reply together, in bytes. It is about a million tokens,
// several times what a model writes at once.
const maxReply = 4 << 20

// replySize counts a reply while it comes, so that one without end is given up before it is held in memory. A provider
// bounds what it reads, of which most may be framing; this bounds what a run keeps, whatever the provider is.
type replySize int

// add counts a piece. The error, a *model.Error that is not retryable, says that the reply is too large.
func (s *replySize) add(d *model.Delta) error {
	switch {
	case d.Reset:
		*s = 0
	case d.Call != nil:
		*s += replySize(len(d.Call.Arguments))
	case d.Reply != nil: // all of it once more, and what no piece has shown
		*s = sizeOf(d.Reply.Message.Content)
	default:
		*s += replySize(len(d.Text) + len(d.Reasoning))
	}
	if *s <= maxReply {
		return nil
	}
	return &model.Error{
		Class:  model.ReplyTooLarge,
		Detail: fmt.Sprintf("its text, reasoning and tool calls are together larger than %d bytes", maxReply),
		Hint:   "ask for a shorter answer, or set the agent's maxTokens",
	}
}

func sizeOf(content []messages.Block) (n replySize) {
	for i := range content {
		b := &content[i]
		n += replySize(len(b.Text))
		if r := b.Reasoning; r != nil {
			n += replySize(len(r.Text) + len(r.Signature) + len(r.Opaque))
		}
		if c := b.ToolCall; c != nil {
			n += replySize(len(c.ID) + len(c.Name) + len(c.Arguments))
		}
	}
	return n
}
