package messages

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// MemoryPolicy is what runs of an agent take out of long-term memory by themselves, and what they may reach there. What its tools do is the
// operator's to grant.
type MemoryPolicy struct {
	// Collections are those that the agent's tools, Recall and Learn may reach: names, or beginnings of names and *. A tool reaches no more than the
	// operator grants. An empty list leaves none; default: what the operator grants.
	Collections []string `json:"collections,omitzero"`

	Recall *RecallPolicy `json:"recall,omitempty"` // default: a run begins without memories
	Learn  *LearnPolicy  `json:"learn,omitempty"`  // default: nothing is learned
}

// Reaches reports whether runs of the agent may reach a collection. A nil policy reaches each.
func (p *MemoryPolicy) Reaches(collection string) bool {
	return p == nil || p.Collections == nil || Names(p.Collections, collection)
}

// within is what an agent may reach that another one hands its task to: no more than either reaches. What the policy would recall or learn elsewhere
// goes.
func (p *MemoryPolicy) within(above *MemoryPolicy) *MemoryPolicy {
	if above == nil || above.Collections == nil {
		return p
	}
	out := MemoryPolicy{}
	if p != nil {
		out = *p
	}
	out.Collections = patternsOfBoth(above.Collections, out.Collections)
	if r := out.Recall; r != nil {
		left := *r
		left.Collections = slices.DeleteFunc(slices.Clone(r.collections()), func(name string) bool { return !out.Reaches(name) })
		if out.Recall = &left; len(left.Collections) == 0 {
			out.Recall = nil
		}
	}
	if l := out.Learn; l != nil && !out.Reaches(l.collection()) {
		out.Learn = nil
	}
	return &out
}

// patternsOfBoth are the names on two lists, of which a nil one has each: of two patterns the longer one, if it is a part of the other.
func patternsOfBoth(a, b []string) []string {
	if b == nil {
		return a
	}
	both := []string{} // an empty list is not an absent one
	for _, x := range a {
		for _, y := range b {
			part := ""
			switch {
			case Names([]string{x}, y):
				part = y
			case Names([]string{y}, x):
				part = x
			}
			if part != "" && !slices.Contains(both, part) {
				both = append(both, part)
			}
		}
	}
	return both
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
	p.Collection = p.collection()
	return &p
}

func (p *LearnPolicy) collection() string { return cmp.Or(p.Collection, defaultExamples) }

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

// ToolRemember is the name of the tool that writes to long-term memory. To rules, what clients write is an argument of it.
const ToolRemember = "remember"

// Defaults and limits of a RecallPolicy.
const (
	DefaultCollection = "facts"
	defaultExamples   = "examples"

	defaultRecalled      = 5
	defaultRecallTokens  = 1500
	defaultRecallTimeout = Duration(3 * time.Second)

	maxReached           = 32 // as many as an operator grants
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
	p.Collections = p.collections()
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

func (p *RecallPolicy) collections() []string {
	if len(p.Collections) == 0 {
		return []string{DefaultCollection}
	}
	return p.Collections
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
	if p.Learn != nil {
		if err := strict.Under("learn", p.Learn.check(planner)); err != nil {
			return err
		}
	}
	return p.checkCollections()
}

func (p *LearnPolicy) check(planner string) error {
	switch {
	case planner != PlannerPlan:
		return &FieldError{Field: strict.Body, Reason: fmt.Sprintf("needs planner %s, not %s: what is learned are plans", PlannerPlan, planner)}
	case p.TTL != 0 && p.TTL < Duration(time.Second):
		return &FieldError{Field: "ttl", Reason: "must be at least 1s"}
	case p.Collection != "":
		return strict.CheckToken("collection", p.Collection)
	default:
		return nil
	}
}

// checkCollections checks the list, and that what the agent recalls and learns is on it.
func (p *MemoryPolicy) checkCollections() error {
	if len(p.Collections) > maxReached {
		return &FieldError{Field: "collections", Reason: fmt.Sprintf("must be at most %d", maxReached)}
	}
	for i, name := range p.Collections {
		field := fmt.Sprintf("collections[%d]", i)
		if !isCollectionPattern(name) {
			return &FieldError{Field: field, Reason: collectionPattern}
		}
		if slices.Index(p.Collections, name) != i {
			return &FieldError{Field: field, Reason: "is named twice"}
		}
	}
	if p.Recall != nil {
		for i, name := range p.Recall.collections() {
			if !p.Reaches(name) {
				field := "recall.collections"
				if len(p.Recall.Collections) > 0 {
					field += fmt.Sprintf("[%d]", i)
				}
				return &FieldError{Field: field, Reason: name + " is not in memory.collections"}
			}
		}
	}
	if p.Learn != nil && !p.Reaches(p.Learn.collection()) {
		return &FieldError{Field: "learn.collection", Reason: strict.Shown(p.Learn.collection()) + " is not in memory.collections"}
	}
	return nil
}

const collectionPattern = "must be a collection's name, or the beginning of one and *"

func isCollectionPattern(name string) bool {
	return name == "*" || strict.ValidToken(strings.TrimSuffix(name, "*"))
}

func (p *RecallPolicy) check() error {
	if err := checkRecalled(p.Collections); err != nil {
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

func checkRecalled(names []string) error {
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
