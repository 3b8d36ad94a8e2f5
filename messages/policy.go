package messages

import (
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Policy is a set of rules about what runs may do. Those of the fleet, of a tenant and of an agent hold together: a call
// needs the consent of all, and what one of them blocks or redacts is blocked or redacted.
type Policy struct {
	Tools   *ToolRules    `json:"tools,omitempty"`   // default: the agent's tools
	Hosts   []string      `json:"hosts,omitzero"`    // that arguments of tools may name in URLs: "api.example.com", "*.example.com", either with a port; default: any
	Content []ContentRule `json:"content,omitempty"` // what text may hold
	Approve []ApproveRule `json:"approve,omitempty"` // which calls wait for a person
	Rates   []RateRule    `json:"rates,omitempty"`   // how often tools may be called
	Taint   *TaintRule    `json:"taint,omitempty"`   // what may no longer leave a run that has read both private and untrusted data
	Events  *EventRules   `json:"events,omitempty"`  // what events of runs show; default: all but keys and personal data
	Memory  string        `json:"memory,omitempty"`  // what memories beside the log may hold of runs: "keep", "redact" (default) or "drop"
	Retain  []RetainRule  `json:"retain,omitempty"`  // how long long-term memory may hold what is written to it; default: as long as the writer asks
}

// RetainRule bounds how long long-term memory holds what is written to a collection. It only shortens what the writer asks for, and the shortest
// of the rules that match counts.
type RetainRule struct {
	Collection string   `json:"collection"` // a name, or the beginning of one and *
	For        Duration `json:"for"`        // from when the item was created; 1s or more
}

// ToolRules say which tools may be called. A name may end in *, which stands for the rest of it. Deny goes before Allow.
type ToolRules struct {
	Allow []string `json:"allow,omitzero"` // default: all
	Deny  []string `json:"deny,omitempty"`
}

// ContentRule blocks or redacts text that matches its category or its pattern.
type ContentRule struct {
	Name     string        `json:"name"`
	At       []PolicyPoint `json:"at,omitempty"`       // default: everywhere
	Tools    []string      `json:"tools,omitempty"`    // of arguments and output: of these tools alone; default: all
	Category string        `json:"category,omitempty"` // email, phone, card, iban, ssn or key; or a pattern
	Pattern  string        `json:"pattern,omitempty"`  // RE2, on one text
	Action   string        `json:"action,omitempty"`   // "redact" (default) or "block"
}

// ApproveRule makes calls wait for an approval. All that it says must hold of a call.
type ApproveRule struct {
	Name      string   `json:"name"`
	Tool      string   `json:"tool"`                // a name, or the beginning of one and *
	Argument  string   `json:"argument,omitempty"`  // of the arguments, dots lead into objects: the rule is about its value
	Pattern   string   `json:"pattern,omitempty"`   // RE2 that the argument matches, or without Argument the whole of the arguments
	Hosts     []string `json:"hosts,omitempty"`     // a URL in the arguments names one of them
	First     bool     `json:"first,omitempty"`     // it is the first call of the tool in the run
	CostAbove *float64 `json:"costAbove,omitempty"` // the run has cost more than this, in US dollars
	Edit      bool     `json:"edit,omitempty"`      // the call may be approved with other arguments
}

// RateRule bounds how often tools may be called in each minute or hour of the clock, by all runs together for which the policy holds,
// on all workers. A call without room waits.
type RateRule struct {
	Name      string `json:"name"`                                                 // unique in its policy
	Tool      string `json:"tool"`                                                 // a name, or the beginning of one and *: calls of all these tools count together
	PerMinute *int   `json:"perMinute,omitempty" minimum:"1" maximum:"1000000000"` // 1 or more
	PerHour   *int   `json:"perHour,omitempty" minimum:"1" maximum:"1000000000"`   // 1 or more
}

// TaintRule names tools by what they read and reach; names may end in *. Once a run has had results of a private and of an
// untrusted tool, its calls of egress tools wait for a person.
type TaintRule struct {
	Private   []string `json:"private"`
	Untrusted []string `json:"untrusted"`
	Egress    []string `json:"egress"`
}

// EventRules say what the events of runs show, and all that is made of events: indexes, traces, webhooks. A run's log and its result
// are not events.
type EventRules struct {
	// Redact takes what the categories of content rules find out of texts. Default true; it is false only if a policy says so
	// and no other one says true.
	Redact  *bool  `json:"redact,omitempty"`
	Inputs  string `json:"inputs,omitempty"`  // the arguments of tool calls: "include" (default) or "exclude"
	Outputs string `json:"outputs,omitempty"` // the results of tool calls: the same
}

// Values of EventRules.Inputs and Outputs.
const (
	PolicyInclude = "include"
	PolicyExclude = "exclude"
)

// Values of Policy.Memory. The strictest of the policies that hold together counts; keep counts only if no other one says anything.
const (
	MemoryKeep   = "keep"   // all
	MemoryRedact = "redact" // no keys and no personal data
	MemoryDrop   = "drop"   // nothing
)

func (r *EventRules) check() error {
	for _, f := range []struct{ name, value string }{{"inputs", r.Inputs}, {"outputs", r.Outputs}} {
		if f.value != "" && f.value != PolicyInclude && f.value != PolicyExclude {
			return &FieldError{Field: f.name, Reason: "must be include or exclude"}
		}
	}
	return nil
}

// PolicyPoint is where a policy looks.
type PolicyPoint string

// Policy points.
const (
	PolicyPlan      PolicyPoint = "plan"      // which tool a model calls
	PolicyArguments PolicyPoint = "arguments" // of a tool call
	PolicyOutput    PolicyPoint = "output"    // of a tool
	PolicyReply     PolicyPoint = "reply"     // of a model, final answers included
	PolicyInput     PolicyPoint = "input"     // of the task
)

// contentPoints are those of content rules.
func contentPoints() []PolicyPoint {
	return []PolicyPoint{PolicyArguments, PolicyOutput, PolicyReply, PolicyInput}
}

// Actions of policies, in rules and in events.
const (
	PolicyRedact = "redact"
	PolicyBlock  = "block"
	PolicyAsk    = "ask" // for an approval
)

// PolicyCategories are those of content rules.
func PolicyCategories() []string { return []string{"card", "email", "iban", "key", "phone", "ssn"} }

// Limits of a policy.
const (
	maxRules       = 64 // of a kind
	maxRuleNames   = 256
	maxRulePattern = 1 << 10 // bytes of a pattern
	maxRuleProgram = 1 << 10 // instructions of a compiled pattern: a byte of text costs up to so many steps
	maxRate        = 1_000_000_000
	minRetain      = Duration(time.Second)
	maxRetain      = Duration(100 * 365 * 24 * time.Hour)
)

// PolicyViolation is the data of policy_violation: a rule blocked something, changed it, or makes it wait for a person.
type PolicyViolation struct {
	Point    PolicyPoint `json:"point"`
	Action   string      `json:"action"`
	Rule     string      `json:"rule"`
	Source   string      `json:"source"` // whose rule it is: "fleet", "tenant acme", "agent reporter"
	StepID   string      `json:"stepId,omitempty"`
	ToolName string      `json:"toolName,omitempty"`
	CallID   string      `json:"callId,omitempty"`
	Reason   string      `json:"reason"` // what the model is told too; it repeats nothing that a rule hides
}

// Check returns a *FieldError for the first field that is wrong, below a path such as "policy".
func (p *Policy) Check(path string) error { return strict.Under(path, p.check()) }

func (p *Policy) check() error {
	if t := p.Tools; t != nil {
		if err := checkToolNames("tools.allow", t.Allow); err != nil {
			return err
		}
		if err := checkToolNames("tools.deny", t.Deny); err != nil {
			return err
		}
	}
	if err := checkHostNames("hosts", p.Hosts); err != nil {
		return err
	}
	if p.Memory != "" && !slices.Contains([]string{MemoryKeep, MemoryRedact, MemoryDrop}, p.Memory) {
		return &FieldError{Field: "memory", Reason: "must be keep, redact or drop"}
	}
	if err := checkRetain(p.Retain); err != nil {
		return err
	}
	if p.Events != nil {
		if err := strict.Under("events", p.Events.check()); err != nil {
			return err
		}
	}
	if len(p.Content) > maxRules || len(p.Approve) > maxRules {
		return &FieldError{Field: "content", Reason: fmt.Sprintf("content and approve have at most %d rules each", maxRules)}
	}
	for i := range p.Content {
		if err := strict.Under(fmt.Sprintf("content[%d]", i), p.Content[i].check()); err != nil {
			return err
		}
	}
	for i := range p.Approve {
		if err := strict.Under(fmt.Sprintf("approve[%d]", i), p.Approve[i].check()); err != nil {
			return err
		}
	}
	if err := checkRates(p.Rates); err != nil {
		return err
	}
	if t := p.Taint; t != nil {
		for _, list := range []struct {
			field string
			names []string
		}{{"taint.private", t.Private}, {"taint.untrusted", t.Untrusted}, {"taint.egress", t.Egress}} {
			if len(list.names) == 0 {
				return &FieldError{Field: list.field, Reason: "is missing: name tools"}
			}
			if err := checkToolNames(list.field, list.names); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *ContentRule) check() error {
	if err := strict.CheckToken("name", r.Name); err != nil {
		return err
	}
	for i, at := range r.At {
		if !slices.Contains(contentPoints(), at) {
			return &FieldError{Field: fmt.Sprintf("at[%d]", i), Reason: "must be input, arguments, output or reply"}
		}
	}
	if err := checkToolNames("tools", r.Tools); err != nil {
		return err
	}
	switch {
	case r.Category == "" && r.Pattern == "":
		return &FieldError{Field: "pattern", Reason: "is missing: give a pattern, or a category"}
	case r.Category != "" && r.Pattern != "":
		return &FieldError{Field: "category", Reason: "pattern is set too: a rule has one of them"}
	case r.Category != "" && !slices.Contains(PolicyCategories(), r.Category):
		return &FieldError{Field: "category", Reason: "must be one of " + strings.Join(PolicyCategories(), ", ")}
	case r.Action != "" && r.Action != PolicyRedact && r.Action != PolicyBlock:
		return &FieldError{Field: "action", Reason: "must be redact or block"}
	}
	if err := checkRulePattern(r.Pattern); err != nil || r.Pattern == "" {
		return err
	}
	if regexp.MustCompile(r.Pattern).MatchString("") {
		return &FieldError{Field: "pattern", Reason: "matches the empty text, and so every text"}
	}
	return nil
}

func (r *ApproveRule) check() error {
	if err := strict.CheckToken("name", r.Name); err != nil {
		return err
	}
	if err := checkToolNames("tool", []string{r.Tool}); err != nil {
		return &FieldError{Field: "tool", Reason: "must be a tool's name, or the beginning of one and *"}
	}
	if err := strict.CheckText("argument", r.Argument, maxGrant); err != nil {
		return err
	}
	if r.Argument != "" && r.Pattern == "" {
		return &FieldError{Field: "pattern", Reason: "is missing: what the argument must match; .* is any value"}
	}
	if c := r.CostAbove; c != nil && (*c < 0 || math.IsNaN(*c) || math.IsInf(*c, 0)) {
		return &FieldError{Field: "costAbove", Reason: "must be 0 or more"}
	}
	if err := checkHostNames("hosts", r.Hosts); err != nil {
		return err
	}
	return checkRulePattern(r.Pattern)
}

func checkRates(rules []RateRule) error {
	if len(rules) > maxRules {
		return &FieldError{Field: "rates", Reason: fmt.Sprintf("more than %d", maxRules)}
	}
	for i := range rules {
		at := fmt.Sprintf("rates[%d]", i)
		if err := strict.Under(at, rules[i].check()); err != nil {
			return err
		}
		if slices.ContainsFunc(rules[:i], func(r RateRule) bool { return r.Name == rules[i].Name }) {
			return &FieldError{Field: at + ".name", Reason: "another rate has it: calls are counted by the name"}
		}
	}
	return nil
}

func (r *RateRule) check() error {
	if err := strict.CheckToken("name", r.Name); err != nil {
		return err
	}
	if err := checkToolNames("tool", []string{r.Tool}); err != nil {
		return &FieldError{Field: "tool", Reason: "must be a tool's name, or the beginning of one and *"}
	}
	if r.PerMinute == nil && r.PerHour == nil {
		return &FieldError{Field: "perMinute", Reason: "is missing: give perMinute, perHour or both"}
	}
	for _, f := range []struct {
		name string
		n    *int
	}{{"perMinute", r.PerMinute}, {"perHour", r.PerHour}} {
		if f.n != nil && (*f.n < 1 || *f.n > maxRate) {
			return &FieldError{Field: f.name, Reason: fmt.Sprintf("must be 1 to %d; to forbid a tool, name it in tools.deny", maxRate)}
		}
	}
	return nil
}

func checkRetain(rules []RetainRule) error {
	if len(rules) > maxRules {
		return &FieldError{Field: "retain", Reason: fmt.Sprintf("more than %d", maxRules)}
	}
	for i, r := range rules {
		at := fmt.Sprintf("retain[%d]", i)
		if !isCollectionPattern(r.Collection) {
			return &FieldError{Field: at + ".collection", Reason: collectionPattern}
		}
		if r.For < minRetain || r.For > maxRetain {
			return &FieldError{Field: at + ".for", Reason: "must be 1s to 876000h; to keep nothing, set memory to drop"}
		}
	}
	return nil
}

// Retention is the shortest time for which rules let long-term memory hold what is written to a collection; 0: no rule matches.
func Retention(rules []RetainRule, collection string) (shortest time.Duration) {
	for _, r := range rules {
		if may := time.Duration(r.For); Names([]string{r.Collection}, collection) && (shortest == 0 || may < shortest) {
			shortest = may
		}
	}
	return shortest
}

func checkRulePattern(pattern string) error {
	if err := strict.CheckText("pattern", pattern, maxRulePattern); err != nil {
		return err
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return &FieldError{Field: "pattern", Reason: strict.Clip(err.Error(), strict.MaxShown*2)}
	}
	if n := programOf(pattern); n > maxRuleProgram {
		return &FieldError{Field: "pattern", Reason: fmt.Sprintf("is %d instructions long when it is compiled, more than %d: use smaller repetitions, "+
			"for {1,1000} is a thousand copies", n, maxRuleProgram)}
	}
	return nil
}

// programOf is how many instructions a valid pattern is compiled to, as package regexp does it.
func programOf(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}

// checkToolNames checks names of tools, each of which may end in a star.
func checkToolNames(field string, names []string) error {
	if len(names) > maxRuleNames {
		return &FieldError{Field: field, Reason: fmt.Sprintf("more than %d", maxRuleNames)}
	}
	for i, name := range names {
		stem := strings.TrimSuffix(name, "*")
		if name != "*" && !strict.ValidToken(stem) {
			return &FieldError{Field: fmt.Sprintf("%s[%d]", field, i), Reason: "must be a tool's name, or the beginning of one and *"}
		}
	}
	return nil
}

func checkHostNames(field string, names []string) error {
	if len(names) > maxRuleNames {
		return &FieldError{Field: field, Reason: fmt.Sprintf("more than %d", maxRuleNames)}
	}
	for i, name := range names {
		if len(name) > maxGrant || !isHost(name) {
			return &FieldError{Field: fmt.Sprintf("%s[%d]", field, i), Reason: "is not a host such as api.example.com, *.example.com or 10.1.2.3:8080"}
		}
	}
	return nil
}

// isHost reports whether a name can be listed: package hosts reads it, unless it is an international name that cannot be written in ASCII.
func isHost(name string) bool {
	if strings.ContainsAny(name, "/@?#% ") {
		return false
	}
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return ip.Zone() == ""
	}
	name = strings.TrimPrefix(name, "*.")
	u, err := url.Parse("http://" + name)
	return err == nil && u.Host == name && u.Hostname() != "" && !strings.Contains(name, "*")
}

// Names reports whether a list of names, some of which may end in a star, holds a name.
func Names(list []string, tool string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		stem, wild := strings.CutSuffix(name, "*")
		return name == tool || wild && strings.HasPrefix(tool, stem)
	})
}
