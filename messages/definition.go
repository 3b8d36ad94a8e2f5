package messages

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// DefaultAgent works a task that names none.
const DefaultAgent = "default"

// Defaults of an agent.
const (
	DefaultMaxSteps  = 25
	DefaultMaxTokens = 4096
)

// Limits of a definition.
const (
	maxDescription = 4 << 10 // bytes
	maxTools       = 256
	MaxModel       = 256 // bytes
	maxModels      = 8
)

// Definition is an agent. The first record of a run holds the one that the run began with, so an edit never
// changes a run.
type Definition struct {
	Name        string `json:"name"`
	Revision    uint64 `json:"revision,omitempty"` // of the AGENTS bucket; 0: built in
	Description string `json:"description,omitempty"`
	// Expires is when a dispatcher removes the agent, as that of a draft; nil: it stays until a person removes it.
	Expires      *time.Time `json:"expires,omitempty"`
	Instructions string     `json:"instructions,omitempty"`
	Planner      string     `json:"planner,omitempty"`  // default "tools": native tool calling
	Model        string     `json:"model,omitempty"`    // "provider", "provider/model" or empty for the worker's default
	Models       []string   `json:"models,omitempty"`   // instead of Model: in order of priority
	MaxPrice     *float64   `json:"maxPrice,omitempty"` // USD per million tokens, of input and of output each, that a model may cost; nil: any
	Tools        []string   `json:"tools,omitempty"`
	MaxSteps     int        `json:"maxSteps,omitempty" minimum:"1" maximum:"10000"` // default 25
	MaxTokens    int        `json:"maxTokens,omitempty" minimum:"1"`                // of one reply; default 4096
	Temperature  *float64   `json:"temperature,omitempty"`
	Reasoning    string     `json:"reasoning,omitempty"`   // "drop" (default), "keep": in log and events, "echo": also sent back to its provider
	OnToolError  string     `json:"onToolError,omitempty"` // "model" (default): the failure is the tool's answer; "fail": it ends the run

	// A definition of before these fields, in an old log, has none of them: what they are about is then as it was.
	OnInvalidOutput string            `json:"onInvalidOutput,omitempty"`                   // the same for what breaks the rules: an unknown tool, wrong arguments, text that is not of the protocol, something that is not a plan
	ModelRetries    *int              `json:"modelRetries,omitempty"`                      // of a model call, after its first attempt; default: the worker's
	OnTruncated     string            `json:"onTruncated,omitempty"`                       // "fail" (default): a reply cut at maxTokens ends the run; "continue": the model is asked to continue
	ToolTimeout     Duration          `json:"toolTimeout,omitempty"`                       // what a tool call may take at most, where the tool and the worker allow it more; 0: as they say
	Parallel        int               `json:"parallel,omitempty" minimum:"1" maximum:"64"` // calls of one reply that run together, at most; default 8
	RepeatLimit     *int              `json:"repeatLimit,omitempty"`                       // see RepeatsAllowed; default 3
	OutputSchema    json.RawMessage   `json:"outputSchema,omitempty"`                      // JSON Schema of the final answer; not with planner "plan"
	Prompts         map[string]string `json:"prompts,omitempty"`                           // in place of built-in ones, by the names of Prompt… and the purposes of planner "plan"
	Cache           bool              `json:"cache,omitempty"`                             // a model's reply to the same request may be used again; needs temperature 0
	Budget          *Budget           `json:"budget,omitempty"`                            // default: none
	Hooks           []Hook            `json:"hooks,omitempty"`                             // HTTP calls at points of a run
	Session         *SessionPolicy    `json:"session,omitempty"`                           // default: its defaults
	Memory          *MemoryPolicy     `json:"memory,omitempty"`                            // default: nothing is recalled by itself, and nothing learned

	// Of tools.
	Grants      *Grants        `json:"grants,omitempty"`      // default: all that the operator of the worker grants
	Policy      *Policy        `json:"policy,omitempty"`      // rules in addition to those of the fleet and of the tenant
	ToolRetries map[string]int `json:"toolRetries,omitempty"` // by the names of tools: retries of a call that a tool calls transient; default: the tool's

	Delegate *Delegate `json:"delegate,omitempty"` // to whom the tool delegate may hand sub-tasks; default: to no agent

	// Of calls that need an approval.
	Approve *Approve `json:"approve,omitempty"` // default: calls of destructive tools wait for an approval, for 24h

	// Of planner "plan".
	Plan    *Plan  `json:"plan,omitempty"`    // makes a planning call needless; the planner is then "plan"
	Observe string `json:"observe,omitempty"` // when the model is asked how to continue; default "always", with a given plan "never"

	// OnNetworkError says what happens when the model cannot be reached: "park", "retry" or "abort". Without it planner "plan"
	// parks, and the others fail unless the circuit of the model is open.
	OnNetworkError string `json:"onNetworkError,omitempty"`

	// Prompt is a stored prompt that becomes the instructions when a run begins. In the definition that a run holds
	// both are there, and the version is the one that was taken.
	Prompt *PromptRef `json:"prompt,omitempty"`
}

// Values of Definition.Planner.
const (
	PlannerTools = "tools" // native tool calling
	PlannerJSON  = "json"  // tool calls and answers as JSON in the text of a reply
	PlannerPlan  = "plan"  // plan first
)

// planners are all of them, in the order in which they are told.
func planners() []string { return []string{PlannerTools, PlannerJSON, PlannerPlan} }

// Values of Definition.OnToolError.
const (
	OnErrorModel = "model"
	OnErrorFail  = "fail"
)

// Values of Definition.Reasoning.
const (
	ReasoningDrop = "drop"
	ReasoningKeep = "keep"
	ReasoningEcho = "echo"
)

// BuiltinAgent is the agent "default": native tool calling with the three file tools.
func BuiltinAgent() Definition {
	d := Definition{
		Name:        DefaultAgent,
		Description: "Works a task with the three file tools.",
		Instructions: "You are a careful assistant that completes the user's task. " +
			"You have a folder of files and tools to list, read and write them; use them when the task needs it. " +
			"When you are done, answer with the result alone.",
		Tools: []string{"list_files", "read_file", "write_file"},
	}
	d.SetDefaults()
	return d
}

// SetDefaults fills planner, limits and failure settings.
func (d *Definition) SetDefaults() {
	if d.Planner == "" {
		d.Planner = PlannerTools
		if d.Plan != nil {
			d.Planner = PlannerPlan
		}
	}
	if d.MaxSteps == 0 && d.Planner == PlannerJSON {
		d.MaxSteps = DefaultJSONSteps
	}
	if d.MaxSteps == 0 {
		d.MaxSteps = DefaultMaxSteps
	}
	if d.MaxTokens == 0 {
		d.MaxTokens = DefaultMaxTokens
	}
	if d.OnToolError == "" {
		d.OnToolError = OnErrorModel
	}
	d.setLoopDefaults()
	d.setHookDefaults()
}

// Steps is how many steps a run may take: the agent's limit, which a task may narrow.
func (d *Definition) Steps(l *Limits) int {
	if l != nil && l.MaxSteps > 0 && l.MaxSteps < d.MaxSteps {
		return l.MaxSteps
	}
	return d.MaxSteps
}

// Validate returns a *FieldError for the first field that is wrong.
func (d *Definition) Validate() error {
	if err := strict.CheckToken("name", d.Name); err != nil {
		return err
	}
	if !slices.Contains(planners(), d.Planner) {
		return &FieldError{Field: "planner", Reason: fmt.Sprintf("%q is not a planner; known: %s", strict.Shown(d.Planner), strings.Join(planners(), ", "))}
	}
	if err := strict.CheckText("description", d.Description, maxDescription); err != nil {
		return err
	}
	if err := strict.CheckText("instructions", d.Instructions, MaxInput); err != nil {
		return err
	}
	if err := d.Prompt.check("prompt"); err != nil {
		return err
	}
	if err := strict.CheckText("model", d.Model, MaxModel); err != nil {
		return err
	}
	if err := d.checkModels(); err != nil {
		return err
	}
	if d.MaxSteps < 1 || d.MaxSteps > MaxStepsOf {
		return &FieldError{Field: "maxSteps", Reason: fmt.Sprintf("must be 1 to %d", MaxStepsOf)}
	}
	if d.MaxTokens < 1 {
		return &FieldError{Field: "maxTokens", Reason: "must be at least 1"}
	}
	if t := d.Temperature; t != nil && (*t < 0 || *t > 2 || math.IsNaN(*t)) {
		return &FieldError{Field: "temperature", Reason: "must be 0 to 2"}
	}
	if d.Cache && (d.Temperature == nil || *d.Temperature != 0) {
		return &FieldError{Field: "cache", Reason: "needs temperature 0"}
	}
	if d.OnToolError != OnErrorModel && d.OnToolError != OnErrorFail {
		return &FieldError{Field: "onToolError", Reason: "must be model or fail"}
	}
	if d.Reasoning != "" && d.Reasoning != ReasoningDrop && d.Reasoning != ReasoningKeep && d.Reasoning != ReasoningEcho {
		return &FieldError{Field: "reasoning", Reason: "must be drop, keep or echo"}
	}
	if err := d.checkLoop(); err != nil {
		return err
	}
	if d.Budget != nil {
		if err := d.Budget.check("budget."); err != nil {
			return err
		}
	}
	if d.Session != nil {
		if err := d.Session.check(); err != nil {
			return err
		}
	}
	if err := d.checkHooks(); err != nil {
		return err
	}
	if err := d.checkTools(); err != nil {
		return err
	}
	if err := d.checkPlanning(); err != nil {
		return err
	}
	if d.Memory != nil {
		if err := strict.Under("memory", d.Memory.check(d.Planner)); err != nil {
			return err
		}
	}
	if err := d.checkGrants(); err != nil {
		return err
	}
	if err := d.checkDelegate(); err != nil {
		return err
	}
	return d.checkApprove()
}

func (d *Definition) checkModels() error {
	if p := d.MaxPrice; p != nil && (*p < 0 || math.IsNaN(*p) || math.IsInf(*p, 0)) {
		return &FieldError{Field: "maxPrice", Reason: "must be 0 or more"}
	}
	if len(d.Models) > 0 && d.Model != "" {
		return &FieldError{Field: "models", Reason: "model is set too: name all models here, or one there"}
	}
	if len(d.Models) > maxModels {
		return &FieldError{Field: "models", Reason: fmt.Sprintf("more than %d", maxModels)}
	}
	for i, name := range d.Models {
		field := fmt.Sprintf("models[%d]", i)
		if err := strict.CheckText(field, name, MaxModel); err != nil {
			return err
		}
		if name == "" {
			return &FieldError{Field: field, Reason: "is empty"}
		}
		if slices.Index(d.Models, name) != i {
			return &FieldError{Field: field, Reason: "named twice"}
		}
	}
	return nil
}

// What /run-lite works with.
const (
	LiteAgent     = "run-lite"
	LiteWorkspace = "sandbox-lite" // all calls of a tenant share it
	LiteProvider  = "lite"         // the provider that its agent names; without one it is the default provider
)

const liteTokens = 600 // of one reply

// BuiltinAgents are the agents that need no file: "default" and that of /run-lite.
func BuiltinAgents() []Definition { return []Definition{BuiltinAgent(), liteAgent()} }

// Builtin is the built-in agent of a name.
func Builtin(name string) (def Definition, ok bool) {
	for _, d := range BuiltinAgents() {
		if d.Name == name {
			return d, true
		}
	}
	return Definition{}, false
}

// liteAgent is the agent of /run-lite: the JSON protocol, three file tools, and the first thing that goes wrong ends it.
func liteAgent() Definition {
	d := Definition{
		Name:        LiteAgent,
		Description: "Answers /run-lite.",
		Instructions: "You complete the user's task. You have a folder of files, which keeps what earlier tasks wrote into it. " +
			"When you are done, answer with the result alone.",
		Planner: PlannerJSON, Model: LiteProvider, Tools: []string{"list_files", "read_file", "write_file"},
		MaxSteps: DefaultJSONSteps, MaxTokens: liteTokens, Temperature: new(0.0),
		OnToolError: OnErrorFail, OnInvalidOutput: OnErrorFail,
	}
	d.SetDefaults()
	return d
}

// Delegate says to which agents an agent may hand sub-tasks, and how far. Each sub-task is a run of its own, a child.
type Delegate struct {
	Agents []string `json:"agents"`                                     // names
	Depth  int      `json:"depth,omitempty" minimum:"1" maximum:"8"`    // levels of runs below; default 1: children have none
	Total  int      `json:"total,omitempty" minimum:"1" maximum:"1000"` // runs below, on all levels together; default 64
}

// Limits of delegation.
const (
	MaxChildren      = 64 // of one call
	MaxDelegateDepth = 8
	MaxDelegateTotal = 1000
	maxDelegates     = 64 // agents that one may hand sub-tasks to

	defaultDelegateDepth = 1
	defaultDelegateTotal = 64
)

// ToolDelegate is the name of the tool that hands out sub-tasks.
const ToolDelegate = "delegate"

// Values of what a delegation waits for.
const (
	WaitAll    = "all"    // until every child has ended
	WaitFirst  = "first"  // until one has completed
	WaitQuorum = "quorum" // until so many have completed
)

// Values of what becomes of a delegation in which not enough children complete.
const (
	OnChildReturn = "return" // the call answers with what came of each
	OnChildFail   = "fail"   // the call has failed
)

// Levels is how many levels of runs may be below a run of the agent.
func (d *Delegate) Levels() int {
	if d == nil || len(d.Agents) == 0 {
		return 0
	}
	if d.Depth == 0 {
		return defaultDelegateDepth
	}
	return d.Depth
}

// Runs is how many runs may be below a run of the agent.
func (d *Delegate) Runs() int {
	if d == nil || len(d.Agents) == 0 {
		return 0
	}
	if d.Total == 0 {
		return defaultDelegateTotal
	}
	return d.Total
}

// Within is the delegation of a child below a run that has so many levels and runs left for it; nil: it may not delegate.
func (d *Delegate) Within(levels, runs int) *Delegate {
	levels, runs = min(d.Levels(), levels), min(d.Runs(), runs)
	if levels <= 0 || runs <= 0 {
		return nil
	}
	return &Delegate{Agents: d.Agents, Depth: levels, Total: runs}
}

func (d *Definition) checkDelegate() error {
	if d.Delegate == nil {
		return nil
	}
	if len(d.Delegate.Agents) > maxDelegates {
		return &FieldError{Field: "delegate.agents", Reason: fmt.Sprintf("more than %d", maxDelegates)}
	}
	for i, name := range d.Delegate.Agents {
		field := fmt.Sprintf("delegate.agents[%d]", i)
		if err := strict.CheckToken(field, name); err != nil {
			return err
		}
		if slices.Index(d.Delegate.Agents, name) != i {
			return &FieldError{Field: field, Reason: "named twice"}
		}
	}
	if n := d.Delegate.Depth; n < 0 || n > MaxDelegateDepth {
		return &FieldError{Field: "delegate.depth", Reason: fmt.Sprintf("must be 1 to %d", MaxDelegateDepth)}
	}
	if n := d.Delegate.Total; n < 0 || n > MaxDelegateTotal {
		return &FieldError{Field: "delegate.total", Reason: fmt.Sprintf("must be 1 to %d", MaxDelegateTotal)}
	}
	return nil
}
