package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// MemoryPolicy is what runs of an agent take out of long-term memory by themselves. What its tools do is the operator's to grant.
type MemoryPolicy struct {
	Recall *RecallPolicy `json:"recall,omitempty"` // default: a run begins without memories
	Learn  *LearnPolicy  `json:"learn,omitempty"`  // default: nothing is learned
}

// LearnPolicy keeps the plans of completed runs as examples, which runs of the agent that recall find for tasks that are like theirs. A run that
// a person has rated down is no example.
type LearnPolicy struct {
	Collection string   `json:"collection,omitempty"` // default "examples"
	Rated      bool     `json:"rated,omitempty"`      // only runs that a person has rated up
	TTL        Duration `json:"ttl,omitempty"`        // how long an example is kept; default: no end
}

// LearnPolicy is what the agent learns, defaults filled; nil: nothing.
func (d *Definition) LearnPolicy() *LearnPolicy {
	if d.Memory == nil || d.Memory.Learn == nil {
		return nil
	}
	p := *d.Memory.Learn
	if p.Collection == "" {
		p.Collection = defaultExamples
	}
	return &p
}

// Example is the id of the example that a run becomes: the same for each attempt to keep it.
func (r Ref) Example() string {
	sum := sha256.Sum256([]byte("example\n" + r.String()))
	return hex.EncodeToString(sum[:16])
}

// RecallPolicy has a run search long-term memory with the text of its task, once, before its first model call.
type RecallPolicy struct {
	Collections []string `json:"collections,omitempty"`                        // default "facts"
	Scope       string   `json:"scope,omitempty"`                              // whose memories besides the tenant's: "agent" (default), "session" or "tenant"
	TopK        int      `json:"topK,omitempty" minimum:"1" maximum:"50"`      // memories, at most; default 5
	Tokens      int      `json:"tokens,omitempty" minimum:"1" maximum:"32000"` // of all of them, about: four bytes count as one. Default 1500
	MinScore    float64  `json:"minScore,omitempty" minimum:"0" maximum:"1"`   // the part of the best one's score that a memory must have; default 0
	Timeout     Duration `json:"timeout,omitempty"`                            // of a search; default 3s, at most 30s
	Required    bool     `json:"required,omitempty"`                           // a search that fails three times ends the run; otherwise the run continues without memories
}

// Values of RecallPolicy.Scope.
const (
	MemoryOfAgent   = "agent"
	MemoryOfSession = "session"
	MemoryOfTenant  = "tenant"
)

// ToolRecall is the name of the tool that searches long-term memory. To rules, what a run remembers is its result.
const ToolRecall = "recall"

// Defaults and limits of a RecallPolicy.
const (
	DefaultCollection = "facts"
	defaultExamples   = "examples"

	defaultRecalled      = 5
	defaultRecallTokens  = 1500
	defaultRecallTimeout = Duration(3 * time.Second)

	maxRecallCollections = 8
	maxRecalled          = 50
	maxRecallTokens      = 32_000
	maxRecallTimeout     = Duration(30 * time.Second)
)

// RecallPolicy is what runs of the agent recall before they begin, defaults filled; nil: nothing.
func (d *Definition) RecallPolicy() *RecallPolicy {
	if d.Memory == nil || d.Memory.Recall == nil {
		return nil
	}
	p := *d.Memory.Recall
	if len(p.Collections) == 0 {
		p.Collections = []string{DefaultCollection}
	}
	if p.Scope == "" {
		p.Scope = MemoryOfAgent
	}
	if p.TopK == 0 {
		p.TopK = defaultRecalled
	}
	if p.Tokens == 0 {
		p.Tokens = defaultRecallTokens
	}
	if p.Timeout == 0 {
		p.Timeout = defaultRecallTimeout
	}
	return &p
}

// Sees is the agent and the session whose memories a run sees besides those of all the tenant; false: it has no session, and sees none.
func (p *RecallPolicy) Sees(agent, session string) (ofAgent, ofSession string, ok bool) {
	switch p.Scope {
	case MemoryOfTenant:
		return "", "", true
	case MemoryOfSession:
		return "", session, session != ""
	default:
		return agent, "", true
	}
}

func (p *MemoryPolicy) check(planner string) error {
	if p.Recall != nil {
		if err := strict.Under("recall", p.Recall.check()); err != nil {
			return err
		}
	}
	switch l := p.Learn; {
	case l == nil:
		return nil
	case planner != PlannerPlan:
		return &FieldError{Field: "learn", Reason: fmt.Sprintf("needs planner %s, not %s: what is learned are plans", PlannerPlan, planner)}
	case l.TTL != 0 && l.TTL < Duration(time.Second):
		return &FieldError{Field: "learn.ttl", Reason: "must be at least 1s"}
	case l.Collection != "":
		return strict.CheckToken("learn.collection", l.Collection)
	default:
		return nil
	}
}

func (p *RecallPolicy) check() error {
	if err := checkCollections(p.Collections); err != nil {
		return err
	}
	switch {
	case p.Scope != "" && !slices.Contains([]string{MemoryOfAgent, MemoryOfSession, MemoryOfTenant}, p.Scope):
		return &FieldError{Field: "scope", Reason: "must be agent, session or tenant"}
	case p.TopK < 0 || p.TopK > maxRecalled:
		return &FieldError{Field: "topK", Reason: fmt.Sprintf("must be 1 to %d", maxRecalled)}
	case p.Tokens < 0 || p.Tokens > maxRecallTokens:
		return &FieldError{Field: "tokens", Reason: fmt.Sprintf("must be 1 to %d", maxRecallTokens)}
	case p.MinScore < 0 || p.MinScore > 1 || math.IsNaN(p.MinScore):
		return &FieldError{Field: "minScore", Reason: "must be 0 to 1"}
	case p.Timeout < 0 || p.Timeout > maxRecallTimeout:
		return &FieldError{Field: "timeout", Reason: fmt.Sprintf("must be at most %s", time.Duration(maxRecallTimeout))}
	}
	return nil
}

func checkCollections(names []string) error {
	if len(names) > maxRecallCollections {
		return &FieldError{Field: "collections", Reason: fmt.Sprintf("must be at most %d", maxRecallCollections)}
	}
	for i, name := range names {
		field := fmt.Sprintf("collections[%d]", i)
		if err := strict.CheckToken(field, name); err != nil {
			return err
		}
		if slices.Index(names, name) != i {
			return &FieldError{Field: field, Reason: "is named twice"}
		}
	}
	return nil
}
