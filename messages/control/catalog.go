package control

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests about agents and prompts, which are kept with their history. They are answered by the dispatcher, so that a
// client needs no right to write the store.
const (
	SubjectAgentApply    = "longshore.agents.apply"    // AgentApply -> AgentApplied; conflict: changed since ifRevision
	SubjectAgentDelete   = "longshore.agents.delete"   // CatalogDelete -> Change
	SubjectAgentGet      = "longshore.agents.get"      // CatalogRequest -> AgentRevision
	SubjectAgentHistory  = "longshore.agents.history"  // CatalogRequest -> History
	SubjectAgentValidate = "longshore.agents.validate" // AgentText -> AgentVerdict

	SubjectPromptPut      = "longshore.prompts.put"      // PromptPut -> Prompt; conflict: changed since ifVersion
	SubjectPromptGet      = "longshore.prompts.get"      // CatalogRequest -> Prompt
	SubjectPromptList     = "longshore.prompts.list"     // PromptFilter -> PromptList
	SubjectPromptRender   = "longshore.prompts.render"   // PromptRender -> PromptRendered
	SubjectPromptValidate = "longshore.prompts.validate" // Prompt -> PromptVerdict
	SubjectPromptHistory  = "longshore.prompts.history"  // CatalogRequest -> History
	SubjectPromptDelete   = "longshore.prompts.delete"   // CatalogDelete -> Change
)

// Events about definitions. Their subject is NoRun of the default tenant, for definitions belong to the whole fleet.
const (
	EventAgentApplied  = "agent_applied"
	EventPromptChanged = "prompt_changed"
)

// Change is one revision of an agent or a prompt.
type Change struct {
	Name     string    `json:"name"`
	Revision uint64    `json:"revision"` // a prompt's version
	At       time.Time `json:"at"`
	By       string    `json:"by,omitempty"` // who says to have done it
	Deleted  bool      `json:"deleted,omitempty"`
}

// History is what is kept of the revisions of an agent or a prompt, newest first.
type History struct {
	Changes []Change `json:"changes"`
}

// CatalogRequest names an agent or a prompt, or one revision of it.
type CatalogRequest struct {
	Name     string `json:"name"`
	Revision uint64 `json:"revision,omitempty"` // default: the newest
}

// CatalogDelete asks to remove an agent or a prompt. Its history stays.
type CatalogDelete struct {
	Name       string  `json:"name"`
	IfRevision *uint64 `json:"ifRevision,omitempty"` // only if this is the newest
	By         string  `json:"by,omitempty"`
}

// AgentApply asks to store an agent.
type AgentApply struct {
	Agent      messages.Definition `json:"agent"`
	IfRevision *uint64             `json:"ifRevision,omitempty"` // only if this is the newest; 0: only if there is none
	By         string              `json:"by,omitempty"`
}

// AgentApplied answers AgentApply.
type AgentApplied struct {
	Name     string `json:"name"`
	Revision uint64 `json:"revision"`
	Changed  bool   `json:"changed"` // false: it was so already
}

// AgentRevision is an agent as it was.
type AgentRevision struct {
	Change Change               `json:"change"`
	Agent  *messages.Definition `json:"agent,omitempty"` // absent where the change deleted it
}

// AgentText is an agent as a person writes it: YAML or JSON, a file with its apiVersion, metadata and spec or the definition alone.
type AgentText struct {
	Text string `json:"text"`
	Name string `json:"name,omitempty"` // that it must have; default: any
	// Format asks for the text as `longshore agents get` writes it.
	Format bool `json:"format,omitempty"`
}

// AgentVerdict reports whether an agent may be stored, by the one who asks.
type AgentVerdict struct {
	OK       bool                 `json:"ok"`
	Problems []TextProblem        `json:"problems,omitempty"`
	Agent    *messages.Definition `json:"agent,omitempty"` // as it would be stored, if it may be
	Text     string               `json:"text,omitempty"`  // the agent as a YAML file, if format was asked for and it can be read
}

// TextProblem is a mistake in a text that a person writes.
type TextProblem struct {
	Line   int    `json:"line,omitempty"`  // from 1; absent: the whole text is meant
	Field  string `json:"field,omitempty"` // as the text has it, such as spec.maxSteps
	Reason string `json:"reason"`
}

// PromptPut asks to store a prompt.
type PromptPut struct {
	Prompt    messages.Prompt `json:"prompt"`
	IfVersion *uint64         `json:"ifVersion,omitempty"` // only if this is the newest; 0: only if there is none
}

// PromptFilter says which prompts to list.
type PromptFilter struct {
	Tag  string `json:"tag,omitempty"`
	Name string `json:"name,omitempty"` // of the id or the name, a part
}

// PromptList is prompts by id, without their texts.
type PromptList struct {
	Prompts []messages.Prompt `json:"prompts"`
}

// PromptRender asks to fill in a stored prompt.
type PromptRender struct {
	ID             string          `json:"id"`
	Version        uint64          `json:"version,omitempty"` // default: the newest
	Vars           json.RawMessage `json:"vars,omitempty"`    // an object
	ThrowOnMissing bool            `json:"throwOnMissing,omitempty"`
}

// PromptRendered is a prompt that was filled in.
type PromptRendered struct {
	ID             string `json:"id"`
	Version        uint64 `json:"version"`
	Text           string `json:"text"`
	TokensEstimate int    `json:"tokensEstimate"` // about a token per four bytes
}

// PromptVerdict reports whether a prompt may be stored.
type PromptVerdict struct {
	OK     bool     `json:"ok"`
	Errors []string `json:"errors,omitempty"`
	Vars   []string `json:"vars,omitempty"` // that the text names
	// Problems are the errors, with their fields and their lines in the text.
	Problems []TextProblem `json:"problems,omitempty"`
}

// Check returns a *FieldError when a name is not valid or by is too long.
func (r CatalogDelete) Check() error {
	if err := strict.CheckToken("name", r.Name); err != nil {
		return err
	}
	return strict.CheckText("by", r.By, messages.MaxAuthor)
}

// Check returns a *FieldError when the agent or by is not right. Defaults must have been filled.
func (r *AgentApply) Check() error {
	if err := r.Agent.Validate(); err != nil {
		return strict.Under("agent", err)
	}
	return strict.CheckText("by", r.By, messages.MaxAuthor)
}

// MaxAgentText bounds a definition as a person writes it, in bytes.
const MaxAgentText = 1 << 19

// Check returns a *FieldError when the text is too large. What is wrong with what it says, the verdict tells.
func (r *AgentText) Check() error {
	if len(r.Text) > MaxAgentText {
		return &messages.FieldError{Field: "text", Reason: fmt.Sprintf("larger than %d bytes", MaxAgentText)}
	}
	return nil
}

// Check returns a *FieldError when the vars are not an object or too large.
func (r *PromptRender) Check() error {
	if err := strict.CheckToken("id", r.ID); err != nil {
		return err
	}
	return messages.CheckObject("vars", r.Vars, messages.MaxVars)
}
