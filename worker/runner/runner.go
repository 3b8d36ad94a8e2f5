// Package runner is the owner's side of a run: judge a ticket, claim the run, plan, perform, append, settle.
//
// [Runner.Run] works one ticket until its run ends, parks, is lost or handed back, and says what to do with the task
// message. Everything it does outside goes through the interfaces of [Config], so it runs on JetStream and Redis in a
// worker, and in memory in simulations and programs that embed an agent. It links no NATS, Redis or HTTP.
package runner

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/snapshot"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memorylimit"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/policy"
)

// Cache keeps the latest state of runs. Losing it costs time only.
type Cache interface {
	// Load returns the cached bytes and the log entry that they reflect.
	Load(ctx context.Context, run messages.Ref) (seq uint64, entryID string, data []byte, ok bool)
	// Save never blocks and may drop.
	Save(run messages.Ref, seq uint64, entryID string, data []byte)
	// Wants reports whether Save would do anything, so that an absent cache costs no encoding.
	Wants() bool
}

// Config is fixed for the life of a Runner. All fields are needed but those with a default.
type Config struct {
	Worker     string // name of this worker
	Life       string // of this life of the worker, a token: its claims name it. Default: a new id
	Controller *runlog.Controller
	Cache      Cache // default: none
	Model      model.Provider
	Tools      *tools.Set
	// Folders has a folder for each claim, whose files are saved with each report and follow the run. nil: Workspace.
	Folders *snapshot.Folders
	// Workspace opens the files of a run as they are on this machine: nothing is saved. Needed without Folders.
	Workspace   func(run messages.Ref) (*sandbox.Workspace, error)
	Agent       func(ctx context.Context, name string) (messages.Definition, error)      // messages.ErrUnknownAgent if there is none
	MaxInput    int                                                                      // bytes of a task's input; default messages.MaxInput
	MaxAttempts int                                                                      // claims without progress before a run is poison; default 5
	LongWait    time.Duration                                                            // a model that asks for more than that is waited for in a park; default 30 s
	Redact      func(string) string                                                      // takes secrets out of what models and tools say; default: nothing
	Log         *slog.Logger                                                             // default: discard
	Live        func(run messages.Ref, step, attempt int, shown *record.Shown) LiveReply // shows replies while they are written, no more than events may show; default: they are not shown
	// LiveOutput shows what programs of tools write while they run, no more than events may show; default: it is not shown.
	LiveOutput    func(run messages.Ref, step, attempt int, call messages.ToolCall, shown *record.Shown) LiveOutput
	Conversations Cache                                 // keeps the conversation of each session, as Cache does states; default: none
	Memory        longterm.Store                        // what agents recall before they begin, and learn; default: none, and both fail
	Prices        Prices                                // default: every price is unknown
	Hooks         []Hook                                // called in every run, before the agent's own
	AgentHook     func(messages.Hook) (HookFunc, error) // makes an agent's hook, or says why not; default: they are refused
	Secrets       *policy.Redactor                      // Redact for text in pieces; without it a hook gets a reply when it is complete

	// Prompt, if set, fills in the prompt that an agent names, when a run begins. A *messages.FieldError in its error, or
	// messages.ErrUnknownPrompt, fails the run.
	Prompt func(ctx context.Context, def *messages.Definition, task *messages.Task) error

	// Policies are the rules of the fleet and of a tenant; those of an agent are in its definition. Default: none.
	Policies func(tenant string) []policy.Layer

	Rates  limits.CallCounter  // counts calls of tools by the rates of policies; default: the runs of this Runner alone, in memory
	Quotas limits.Quotas       // hold back runs of tenants; default: none is held
	Fleet  Fleet               // the other workers; default: nothing is known of them
	Labels messages.Labels     // of this worker, for tasks that require them
	Budget *memorylimit.Budget // of memory, for all runs together; default: there is no limit
}

// DefaultMaxAttempts is how often a run is claimed without progress before it is taken for poison.
const DefaultMaxAttempts = 5

// DefaultLongWait is the longest wait for a model that is spent in a slot.
const DefaultLongWait = 30 * time.Second

// Elsewhere is the workers that have what this one lacks.
type Elsewhere interface {
	limits.Roster
	// Pass gives the ticket's message to one that fits and has a free slot. If it returns true the message must not be
	// touched any longer.
	Pass(ctx context.Context, n *messages.Needs) (bool, error)
}

// Ticket is a task message that may own a run: a start ticket (After 0) or a wake-up named by a log entry.
type Ticket struct {
	Run       messages.Ref
	Seq       uint64 // of the message in TASKS
	After     uint64
	Body      []byte // of a start ticket: the task
	Trace     string // a traceparent that came with the task, as it came, for one that has none
	Priority  messages.Priority
	Queued    time.Time
	Delivered int // how often this message was delivered, from 1
	// Lease is for how much longer the queue gives this message to no other worker; zero or less: it may have. It is called
	// from any goroutine. nil: no other worker ever gets it.
	Lease func() time.Duration
	// Keeps, if set, asks the owner of a claim whether it is alive and working on the run. If so, the message is handed to it and
	// must not be touched afterwards. An error means that it is too early to tell.
	Keeps func(ctx context.Context, claim string) (bool, error)
	// Elsewhere, if set, knows the workers that have what this one lacks; nil: no other worker will ever come, and a run that
	// does not fit this one fails.
	Elsewhere Elsewhere
	// Quarantine, if set, is called before a run is claimed that may be what killed its workers. It waits until the run may
	// be tried; prime: while no other run is. A nil trial without an error: judge again, there is new evidence.
	Quarantine func(ctx context.Context, prime bool) (*Trial, error)
}

// first reports whether the ticket very likely begins its run.
func (t *Ticket) first() bool { return t.After == 0 && t.Delivered <= 1 }

// Outcome tells what to do with the task message.
type Outcome int

// Outcomes.
const (
	Done   Outcome = iota + 1 // settled: ack
	Lost                      // another worker owns the run: touch nothing
	Return                    // handed back: nak
	Kept                      // its owner is alive, and was given the message: touch nothing
)

func (o Outcome) String() string {
	switch o {
	case Done:
		return "done"
	case Lost:
		return "lost"
	case Return:
		return "return"
	case Kept:
		return "kept"
	default:
		return "none"
	}
}

// Causes for which work ends early.
var (
	errFenced  = errors.New("another worker owns the run")
	errControl = errors.New("a control record changed the plan")
	// ErrShutdown is the cause to cancel Run's context with when the worker must stop now.
	ErrShutdown = errors.New("the worker stops")
	// ErrBusy means that this worker works the same run by another ticket: nak, it is soon over.
	ErrBusy = errors.New("the run is held by another ticket")
)

// Runner works runs, many at once. Safe for concurrent use.
type Runner struct {
	cfg      Config
	planners map[string]agent.Planner
	drain    chan struct{}
	stop     sync.Once
	commits  commitLimiter
	claims   atomic.Uint64 // made so far

	mu     sync.Mutex
	active map[messages.Ref]*execution
	stats  Stats
}

// Stats count what no event shows.
type Stats struct {
	Claims   uint64 // claims made
	Reclaims uint64 // of these, after another claim without its end
	Fenced   uint64 // appends refused because another worker owns the run
	Released uint64 // runs handed back
	Poisoned uint64
	Proofs   uint64 // looks at a log before an effect, because the ticket may have been given to another worker

	// Calls made although an owner before, who was lost, may have made them. One that handed its run back had mostly not begun.
	RepeatedModelCalls, RepeatedToolCalls uint64
}

// New returns a Runner.
func New(cfg Config) *Runner {
	if cfg.MaxAttempts == 0 {
		cfg.MaxAttempts = DefaultMaxAttempts
	}
	if cfg.LongWait == 0 {
		cfg.LongWait = DefaultLongWait
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Redact == nil && cfg.Secrets != nil {
		cfg.Redact = cfg.Secrets.String
	}
	if cfg.Redact == nil {
		cfg.Secrets = &policy.Redactor{} // there are none, in pieces neither
		cfg.Redact = func(s string) string { return s }
	}
	if cfg.Cache == nil {
		cfg.Cache = noCache{}
	}
	if cfg.Conversations == nil {
		cfg.Conversations = noCache{}
	}
	if cfg.Rates == nil {
		cfg.Rates = &limits.Counts{}
	}
	if cfg.Life == "" {
		cfg.Life = cfg.Controller.NewID()
	}
	return &Runner{
		cfg: cfg, planners: agent.Planners(), drain: make(chan struct{}), active: map[messages.Ref]*execution{},
	}
}

type noCache struct{}

func (noCache) Load(context.Context, messages.Ref) (uint64, string, []byte, bool) {
	return 0, "", nil, false
}
func (noCache) Save(messages.Ref, uint64, string, []byte) {}
func (noCache) Wants() bool                               { return false }

// Life is the id of this life of the worker.
func (r *Runner) Life() string { return r.cfg.Life }

// newClaim is the id of a claim: of this life of the worker, and unlike any other.
func (r *Runner) newClaim() string {
	return r.cfg.Life + claimSeparator + strconv.FormatUint(r.claims.Add(1), 36)
}

const claimSeparator = "-"

// Claimant is the life of the worker that made a claim; empty for a claim that does not name it.
func Claimant(claim string) string {
	life, _, ok := strings.Cut(claim, claimSeparator)
	if !ok {
		return ""
	}
	return life
}

// Works reports whether this worker works a run under a claim.
func (r *Runner) Works(run messages.Ref, claim string) bool {
	r.mu.Lock()
	x := r.active[run]
	r.mu.Unlock()
	if x == nil || x.own.ctx.Err() != nil {
		return false
	}
	_, mine := x.own.position()
	return mine != "" && mine == claim
}

// Drain makes every run in hand, and every later one, hand itself back at its next boundary.
func (r *Runner) Drain() { r.stop.Do(func() { close(r.drain) }) }

// Stats returns the counts so far.
func (r *Runner) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

func (r *Runner) count(f func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.stats)
}

// Nudge makes the run, if it is in hand, look at its log soon. It does not wait for that.
func (r *Runner) Nudge(run messages.Ref) {
	r.mu.Lock()
	x := r.active[run]
	r.mu.Unlock()
	if x != nil {
		x.own.hint()
	}
}

// Owns looks at the log and reports whether the run is in hand and still ours; the run is notified of what the log shows.
// An error says that the log could not be read, and nothing about the run.
func (r *Runner) Owns(ctx context.Context, run messages.Ref) (bool, error) {
	r.mu.Lock()
	x := r.active[run]
	r.mu.Unlock()
	if x == nil {
		return false, nil
	}
	seen, claim := x.own.position()
	last, ok, err := r.cfg.Controller.Log.Last(ctx, run)
	switch {
	case err != nil:
		return false, err
	case claim == "": // the ticket is ours to hold, unless a newer delivery of it has claimed
		return !ok || last.Head.Ticket != x.ticket.Seq || last.Head.Delivery <= x.ticket.Delivered, nil
	case !ok, last.Seq < seen, last.Head.Claim != claim:
		x.own.abort(errFenced)
		return false, nil
	case last.Seq > seen && last.Head.Cancel:
		x.own.interrupt()
	}
	return true, nil
}

// Run works a ticket. The error, if any, is for the log: the outcome holds all the same.
//
// Cancelling ctx with ErrShutdown aborts what is in progress and hands the run back.
func (r *Runner) Run(ctx context.Context, t Ticket) (Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	paid, end := outlive(ctx)
	defer end()
	x := r.newExecution(ctx, paid, cancel, t)
	defer x.footprint.share.Close()
	if err := r.enter(ctx, x); err != nil {
		return Return, err
	}
	defer r.leave(x)
	if err := x.footprint.enter(ctx); err != nil {
		return Return, err
	}
	defer x.journal.leave()
	if t.first() { // of many that come at once those that came first are soon under way
		if err := x.journal.enter(ctx); err != nil {
			return Return, err
		}
	}
	outcome, err := x.work(ctx)
	if outcome == Lost {
		r.count(func(s *Stats) { s.Fenced++ })
	}
	return outcome, err
}

// busyWait is how long a ticket waits for another of the same run: a wake-up often arrives while its park is settled.
const busyWait = time.Second

func (r *Runner) enter(ctx context.Context, x *execution) error {
	var patience <-chan time.Time
	for {
		r.mu.Lock()
		other := r.active[x.run]
		if other == nil {
			r.active[x.run] = x
		}
		r.mu.Unlock()
		if other == nil {
			return nil
		}
		if patience == nil {
			patience = time.After(busyWait)
		}
		select {
		case <-other.left:
		case <-patience:
			return ErrBusy
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *Runner) leave(x *execution) {
	x.finish()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.active, x.run)
	close(x.left)
}
