package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/scratchpad"
)

// State is the fold of a run's log. Only Apply and Advance change it.
type State struct {
	Seq  uint64      `json:"seq"` // of the last entry folded; with Head.ID it says which log this is
	Head record.Head `json:"head"`

	Task      *messages.Task       `json:"task"`
	Agent     *messages.Definition `json:"agent"`
	Tools     []messages.ToolSpec  `json:"tools,omitempty"`
	StartedAt time.Time            `json:"startedAt"`

	Transcript []messages.Message      `json:"transcript"`
	Open       []OpenCall              `json:"open,omitempty"` // calls of the last reply until all have a result
	Step       int                     `json:"step"`           // the last step begun
	StepOpen   bool                    `json:"stepOpen,omitempty"`
	Calling    bool                    `json:"calling,omitempty"` // the step waits for its reply
	Stop       messages.StopReason     `json:"stop,omitempty"`    // of the last reply
	Usage      messages.Usage          `json:"usage"`
	ModelCalls []messages.ModelCall    `json:"modelCalls,omitempty"`
	ToolMillis byCall[int64]           `json:"toolMillis,omitempty"`
	Codes      byCall[messages.Code]   `json:"codes,omitempty"`     // of failed calls
	Meta       byCall[json.RawMessage] `json:"meta,omitempty"`      // what tools said about results
	MetaBytes  int                     `json:"metaBytes,omitempty"` // of it
	MetaLost   int                     `json:"metaLost,omitempty"`  // results whose Meta found no room
	Trouble    Trouble                 `json:"trouble,omitzero"`
	Attempts   int                     `json:"attempts"`          // claims, less those that ended a park
	Claims     int                     `json:"claims,omitempty"`  // all of them
	Used       []string                `json:"used,omitempty"`    // tools that have given a result, sorted
	Outputs    []string                `json:"outputs,omitempty"` // workspace paths that calls wrote
	Purpose    messages.Purpose        `json:"purpose,omitempty"` // of the last model call begun
	Plan       *Planning               `json:"plan,omitempty"`    // of a run that works a plan

	Answer    string         `json:"answer,omitempty"`    // the final one, as an Interpreter read it
	Partial   string         `json:"partial,omitempty"`   // of a reply that is being continued: its text so far
	Continued int            `json:"continued,omitempty"` // replies in a row that were cut and are being continued
	Corrected bool           `json:"corrected,omitempty"` // an answer that did not fit the output schema was sent back
	Repeats   map[string]int `json:"repeats,omitempty"`   // see repeated

	ModelParks int `json:"modelParks,omitempty"` // since the last reply: parks until the model may be called again

	ToolCalls   int            `json:"toolCalls,omitempty"`   // begun
	Cost        float64        `json:"cost,omitempty"`        // in US dollars, of the calls whose price is known
	CostUnknown bool           `json:"costUnknown,omitempty"` // there are others
	Warned      []string       `json:"warned,omitempty"`      // caps of the budget whose soft share is used
	Extended    map[string]int `json:"extended,omitempty"`    // how often people granted a cap once more

	Edited byCall[string] `json:"edited,omitempty"` // the arguments that people gave calls

	Turn     bool               `json:"turn,omitempty"`     // it has its turn in its session
	Recalled []messages.Message `json:"recalled,omitempty"` // the conversation so far, which goes before the Transcript
	Older    int                `json:"older,omitempty"`    // of Recalled: the first ones, to be summed up

	Unheard  []string `json:"unheard,omitempty"`  // what people told the run since its last model call began
	Heard    []string `json:"heard,omitempty"`    // and before, of a run with a plan; else it is in the Transcript
	Unturned bool     `json:"unturned,omitempty"` // its tenant begins too many tasks: it asks for its turn when it continues

	Delegation  *Delegation    `json:"delegation,omitempty"`  // the newest
	Earlier     []*Delegation  `json:"earlier,omitempty"`     // those before it whose children still run
	Delegations int            `json:"delegations,omitempty"` // so far
	Below       messages.Below `json:"below,omitzero"`        // what runs below used, as far as they told
	Held        record.Share   `json:"held,omitzero"`         // what is set aside for those that did not
	Inherited   []string       `json:"inherited,omitempty"`   // tools that gave results above and below and earlier in the session, sorted
	Parent      *record.Parent `json:"parent,omitempty"`      // of a child

	Permits     []record.Permit `json:"permits,omitempty"`     // that the last park left for later
	PermitsHeld bool            `json:"permitsHeld,omitempty"` // a claim has them, which may have used them

	Files *record.FilesSaved `json:"files,omitempty"` // as they are; nil: none were saved

	Learned    bool                   `json:"learned,omitempty"`    // it has become an example, or it was tried
	Remembered *record.MemoryRecalled `json:"remembered,omitempty"` // of long-term memory, which goes before the Transcript; nil: it was not searched

	Scratchpad   scratchpad.Pad          `json:"scratchpad,omitzero"`
	PassedOn     []scratchpad.Note       `json:"passedOn,omitempty"`     // the scratchpad of its session, which it does not use
	MemoryDeltas []messages.MemoryChange `json:"memoryDeltas,omitempty"` // the first of them, as results show them

	Parked  *record.Parked          `json:"parked,omitempty"` // set while it waits
	Cancel  *record.CancelRequested `json:"cancel,omitempty"`
	Failure *messages.RunError      `json:"failure,omitempty"` // what ends the run
	Result  *messages.AgentResult   `json:"result,omitempty"`  // set: the run has ended

	transcript, recalled tally // of Transcript and Recalled; written by count
}

// kept is the claim of a call that was begun in the run from which this one was forked.
const kept = "forked"

// OpenCall is a tool call on its way.
type OpenCall struct {
	Call    messages.ToolCall    `json:"call"`
	Started string               `json:"started,omitempty"` // the claim that began it
	Answer  *messages.ToolResult `json:"answer,omitempty"`  // came from outside while the run was parked
	Result  *messages.ToolResult `json:"result,omitempty"`
	// Approve says that the call must not begin before it is approved. The runner parks the run with reason "approval"; a Decided
	// approves the call or is its result.
	Approve bool          `json:"approve,omitempty"`
	Refused messages.Code `json:"refused,omitempty"` // the call was, and Answer says how
	Judged  bool          `json:"judged,omitempty"`  // a rule made it wait for a person, once
	Fixed   bool          `json:"fixed,omitempty"`   // that rule lets a person agree to these arguments alone
	Edited  bool          `json:"edited,omitempty"`  // its arguments are those of the person who approved it
}

// Apply folds one entry. An error means that the log is broken or newer than this code.
func (s *State) Apply(e record.Entry) error {
	if s.Seq != 0 && e.Seq <= s.Seq {
		return fmt.Errorf("fold entry %d: it does not follow %d", e.Seq, s.Seq)
	}
	if s.Seq == 0 {
		s.StartedAt = e.Head.Time
	}
	for _, r := range e.Records {
		if err := s.Advance(r); err != nil {
			return fmt.Errorf("fold entry %d: %w", e.Seq, err)
		}
	}
	s.Seq, s.Head = e.Seq, e.Head
	return nil
}

// Clone returns a copy that may be advanced without changing s. Only one of the two may be advanced further.
func (s *State) Clone() *State {
	c := *s
	c.Open = slices.Clone(s.Open)
	c.Plan = s.Plan.clone()
	c.Extended = maps.Clone(s.Extended)
	c.Delegation = s.Delegation.clone()
	c.Earlier = slices.Clone(s.Earlier)
	for i, d := range c.Earlier {
		c.Earlier[i] = d.clone()
	}
	return &c
}

// Advance folds a record that is not in the log yet: what would be true after it.
func (s *State) Advance(r record.Record) error {
	if s.Result != nil {
		return nil // nothing after the end counts
	}
	if _, first := r.(*record.Started); first != (s.Task == nil) {
		return fmt.Errorf("%s is out of place: a log begins with what it is about", r.Kind())
	}
	defer s.count()
	s.note(r)
	switch r := r.(type) {
	case *record.Started:
		s.start(r)
		for _, before := range r.Prefix {
			if err := s.Advance(before); err != nil {
				return fmt.Errorf("steps kept from another run: %w", err)
			}
		}
	case *record.Claimed:
		if r.Resumes == "" {
			s.Attempts++
		}
		s.Claims++
		if r.Resumes != "" && s.Calling { // no call continued while it waited
			s.hear()
		}
		s.Head.Claim = r.Claim
		s.Parked = nil
		s.handPermits()
		if len(s.Tools) == 0 {
			s.Tools = r.Tools
		}
	case *record.StepStarted:
		if r.StepID != "" {
			return s.beginStep(r)
		}
		s.purpose(r.Purpose)
		s.Step, s.StepOpen, s.Calling = r.Step, true, true
		s.hear()
	case *record.ModelReplied:
		s.reply(r)
	case *record.ModelFailed:
		s.failed(r)
	case *record.Planned:
		s.planned(r)
	case *record.ToolStarted:
		if c := s.open(r.Call.ID); c != nil {
			if c.Started == "" {
				s.ToolCalls++
			}
			c.Started = cmp.Or(s.Head.Claim, kept)
			if r.Edited { // a fork keeps the call without the decision
				c.Call.Arguments, c.Edited = r.Call.Arguments, true
			}
		}
	case *record.ToolReturned:
		return s.returned(r)
	case *record.StepEnded:
		if r.StepID != "" {
			return s.endStep(r)
		}
		s.StepOpen = false
	case *record.Parked:
		s.Parked = r
		if s.Plan != nil {
			s.Plan.Pause, s.Plan.Cause = false, nil
		}
		if r.Reason == queue.ParkModel {
			s.ModelParks++
		}
		s.Unturned = r.Again
		s.keepPermits(r)
	case *record.BudgetWarned:
		s.Warned = append(s.Warned, r.Limit)
	case *record.Answered:
		if s.more(r) || s.asking(r.Park) != nil || s.Parked != nil && s.Parked.Reason == queue.ParkChildren { // no answer agrees to a call, nor speaks for children
			break
		}
		s.answer(r.Park, messages.ToolResult{Content: r.Content, IsError: r.IsError})
	case *record.Decided:
		s.decided(r)
	case *record.Expired:
		if s.lapsed(r) {
			break
		}
		s.answer(r.Park, messages.ToolResult{Content: messages.TextContent("No answer came in time."), IsError: true})
	case *record.CancelRequested:
		if s.Cancel == nil {
			s.Cancel = r
		}
	case *record.Finished:
		s.Result, s.Parked = &r.Result, nil
	case *record.HookFailed:
		if r.Fatal {
			s.fail(messages.CodePolicy, fmt.Sprintf("hook %s at %s failed: %s", r.Hook, r.On, r.Reason))
		}
	case *record.PolicyApplied:
		s.judge(r)
	case *record.Recalled:
		s.recall(r)
	case *record.Summarised:
		s.summarised(r)
	case *record.Steered:
		s.Unheard = append(s.Unheard, r.Message)
	case *record.Delegated:
		s.delegated(r)
	case *record.ChildEnded:
		s.childEnded(r)
	case *record.Withdrawn:
		if s.Cancel == nil && s.Parent != nil && s.Parent.Run == r.Parent {
			s.Cancel = &record.CancelRequested{By: "run " + r.Parent, Reason: r.Reason}
		}
	case *record.FilesSaved:
		s.Files = r
	case *record.MemoryWritten:
		s.remember(r)
	case *record.MemoryRecalled:
		s.recollect(r)
	case *record.Released, *record.Lost, *record.SessionGranted, *record.Lined, *record.Unverified:
	default:
		return fmt.Errorf("unknown record %T", r)
	}
	return nil
}

func (s *State) start(r *record.Started) {
	s.Task, s.Agent, s.Tools = &r.Task, &r.Agent, r.Tools
	if r.Parent != nil {
		s.Parent = r.Parent
		s.inherit(r.Parent.Used)
	}
	system := r.Agent.Instructions
	if r.Agent.Planner == messages.PlannerTools {
		system = paragraphs(system, s.outputPrompt())
	}
	if system != "" {
		s.Transcript = append(s.Transcript, messages.Message{
			Role: messages.RoleSystem, Content: messages.TextContent(system),
		})
	}
	ask := slices.Clone([]messages.Block(r.Task.Input))
	if len(r.Task.Context) > 0 {
		ask = append(ask, messages.Block{Text: "\n\nContext, as JSON:\n" + string(r.Task.Context)})
	}
	s.Transcript = append(s.Transcript, messages.Message{Role: messages.RoleUser, Content: ask})
}

func (s *State) reply(r *record.ModelReplied) {
	s.Calling, s.Stop, s.ModelParks = false, r.Stop, 0
	s.Usage = s.Usage.Add(r.Usage)
	s.ModelCalls = append(s.ModelCalls, messages.ModelCall{
		Step: r.Step, Provider: r.Provider, Model: r.Model, Stop: r.Stop, Usage: r.Usage, Millis: r.Millis, Cached: r.Cached, Cost: r.Cost,
	})
	s.paid(r.Cost)
	if s.Purpose != "" {
		s.planning().replied(&r.Message)
		return
	}
	in, ok := Planners()[s.Agent.Planner].(Interpreter)
	if s.Agent.Planner == messages.PlannerTools && s.Agent.OnTruncated == "" { // a log older than interpreters
		ok = false
	}
	if ok {
		s.interpret(in, r)
		return
	}
	s.Answer = r.Message.Text()
	s.say(r.Message)
}

// say puts a reply into the transcript and opens its calls.
func (s *State) say(m messages.Message) {
	s.Transcript = append(s.Transcript, m)
	for _, c := range m.Calls() {
		s.Open = append(s.Open, OpenCall{Call: c, Approve: s.Agent.AsksFor(s.Tools, c.Name)})
	}
}

// ask puts a message to the model into the transcript.
func (s *State) ask(text string) {
	s.Transcript = append(s.Transcript, messages.Message{Role: messages.RoleUser, Content: messages.TextContent(text)})
}

// fail ends the run, unless something else does already.
func (s *State) fail(code messages.Code, text string) {
	if s.Failure == nil {
		s.Failure = &messages.RunError{Code: code, Message: text}
	}
}

func (s *State) returned(r *record.ToolReturned) error {
	c := s.open(r.Result.CallID)
	if c == nil {
		return fmt.Errorf("a result of call %q, which is not open", r.Result.CallID)
	}
	c.Result = s.toldOf(c, r)
	s.embedded(r.Embedded)
	if d := s.Delegation; d != nil && d.Step == r.Step && d.Call == r.Result.CallID {
		d.Done = true
	}
	if r.Millis > 0 {
		s.ToolMillis.add(CallKey(r.Step, r.Result.CallID), r.Millis)
	}
	if r.Code != "" {
		s.Codes.add(CallKey(r.Step, r.Result.CallID), r.Code)
	}
	s.told(r)
	if at, had := slices.BinarySearch(s.Used, r.Name); !had && r.Code != messages.CodePolicy && r.Code != messages.CodeInvalidInput {
		s.Used = slices.Insert(s.Used, at, r.Name)
	}
	if r.Result.IsError {
		before := s.Failure
		defer func() {
			if before == nil && s.Failure != nil {
				s.Trouble.Tool, s.Trouble.Call = r.Name, r.Result.CallID
			}
		}()
		m := messages.Message{Content: r.Result.Content}
		switch {
		// A call that was never begun and is invalid is the model's mistake, not the tool's.
		case r.Code == messages.CodeInvalidInput && c.Started == "" && !c.Edited && s.Agent.OnInvalidOutput != "":
			if s.Agent.OnInvalidOutput == messages.OnErrorFail {
				s.fail(messages.CodeModelInvalidOutput, m.Text())
			}
		case r.Code == messages.CodeApprovalDenied || r.Code == messages.CodeApprovalExpired: // no failure of the tool
			if s.Agent.DenialEnds() {
				s.fail(r.Code, refusal(r.Name, m.Text()))
			}
		case s.Agent.OnToolError == messages.OnErrorFail:
			s.fail(messages.CodeToolFailed, m.Text())
		}
	}
	s.wrote(r.Files)
	if s.Plan != nil {
		return nil // the step's end takes it up
	}
	for _, c := range s.Open {
		if c.Result == nil {
			return nil
		}
	}
	// All are in: they enter the transcript in the order of the calls.
	m := messages.Message{Role: messages.RoleTool, Content: make([]messages.Block, len(s.Open))}
	for i, c := range s.Open {
		m.Content[i].ToolResult = c.Result
	}
	s.repeated(m.Content)
	s.Transcript, s.Open = append(s.Transcript, m), nil
	return nil
}

// maxOutputs bounds the paths that a result names.
const maxOutputs = 1000

func (s *State) wrote(files []string) {
	for _, f := range files {
		if len(s.Outputs) < maxOutputs && !slices.Contains(s.Outputs, f) {
			s.Outputs = append(s.Outputs, f)
		}
	}
}

// CallKey tells calls of a run apart: providers use the same id again in a later step.
func CallKey(step int, id string) string { return strconv.Itoa(step) + "." + id }

func (s *State) answer(park uint64, res messages.ToolResult) {
	if s.Parked == nil || s.Head.ParkSeq != park {
		return
	}
	if c := s.open(s.Parked.Call); c != nil && c.Answer == nil {
		if c.Approve && !res.IsError {
			c.Approve = false
			return
		}
		res.CallID = c.Call.ID
		c.Answer = &res
	}
}

func (s *State) open(id string) *OpenCall {
	for i := range s.Open {
		if s.Open[i].Call.ID == id {
			return &s.Open[i]
		}
	}
	return nil
}

// Encode writes the state for a cache. Decode reads it back.
func (s *State) Encode() ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	return b, nil
}

// Of reports whether the state is one of this run and can be planned on. A cache may hold anything.
func (s *State) Of(run messages.Ref) bool {
	if s.Task == nil || s.Agent == nil || s.Task.Ref() != run || len(s.Transcript) == 0 {
		return false
	}
	return s.Agent.Validate() == nil && Planners()[s.Agent.Planner] != nil
}

// Decode reads what Encode wrote.
func Decode(data []byte) (*State, error) {
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	s.count()
	return &s, nil
}
