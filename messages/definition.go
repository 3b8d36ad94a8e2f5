package messages

import (
	"fmt"
	"math"
	"slices"
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
)

// Definition is an agent. The first record of a run holds the one that the run began with, so an edit never
// changes a run.
type Definition struct {
	Name         string   `json:"name"`
	Revision     uint64   `json:"revision,omitempty"` // of the AGENTS bucket; 0: built in
	Description  string   `json:"description,omitempty"`
	Instructions string   `json:"instructions,omitempty"`
	Planner      string   `json:"planner,omitempty"` // default "tools": native tool calling
	Model        string   `json:"model,omitempty"`   // "provider", "provider/model" or empty for the worker's default
	Tools        []string `json:"tools,omitempty"`
	MaxSteps     int      `json:"maxSteps,omitempty"`  // default 25
	MaxTokens    int      `json:"maxTokens,omitempty"` // of one reply; default 4096
	Temperature  *float64 `json:"temperature,omitempty"`
	Reasoning    string   `json:"reasoning,omitempty"`   // "drop" (default), "keep": in log and events, "echo": also sent back to its provider
	OnToolError  string   `json:"onToolError,omitempty"` // "model" (default): the failure is the tool's answer; "fail": it ends the run
	// Prompt is a stored prompt that becomes the instructions when a run begins. In the definition that a run holds
	// both are there, and the version is the one that was taken.
	Prompt *PromptRef `json:"prompt,omitempty"`
}

// PlannerTools is native tool calling.
const PlannerTools = "tools"

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
	if err := checkToken("name", d.Name); err != nil {
		return err
	}
	if d.Planner != PlannerTools {
		return &FieldError{"planner", fmt.Sprintf("%q is not a planner; known: %s", shown(d.Planner), PlannerTools)}
	}
	if err := checkText("description", d.Description, maxDescription); err != nil {
		return err
	}
	if err := checkText("instructions", d.Instructions, MaxInput); err != nil {
		return err
	}
	if err := d.Prompt.check("prompt"); err != nil {
		return err
	}
	if err := checkText("model", d.Model, 256); err != nil {
		return err
	}
	if d.MaxSteps < 1 || d.MaxSteps > maxStepsOf {
		return &FieldError{"maxSteps", fmt.Sprintf("must be 1 to %d", maxStepsOf)}
	}
	if d.MaxTokens < 1 {
		return &FieldError{"maxTokens", "must be at least 1"}
	}
	if t := d.Temperature; t != nil && (*t < 0 || *t > 2 || math.IsNaN(*t)) {
		return &FieldError{"temperature", "must be 0 to 2"}
	}
	if d.OnToolError != OnErrorModel && d.OnToolError != OnErrorFail {
		return &FieldError{"onToolError", "must be model or fail"}
	}
	if d.Reasoning != "" && d.Reasoning != ReasoningDrop && d.Reasoning != ReasoningKeep && d.Reasoning != ReasoningEcho {
		return &FieldError{"reasoning", "must be drop, keep or echo"}
	}
	if len(d.Tools) > maxTools {
		return &FieldError{"tools", fmt.Sprintf("more than %d", maxTools)}
	}
	for i, name := range d.Tools {
		if err := checkToken(fmt.Sprintf("tools[%d]", i), name); err != nil {
			return err
		}
		if slices.Index(d.Tools, name) != i {
			return &FieldError{fmt.Sprintf("tools[%d]", i), "named twice"}
		}
	}
	return nil
}
