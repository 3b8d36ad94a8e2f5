package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/sensitive"
	"github.com/longshore-run/longshore/messages/strict"
)

// Layer is a policy and whose it is: "fleet", "tenant acme", "agent reporter".
type Layer struct {
	Source string
	Policy *messages.Policy // nil: no rules
	Minute time.Duration    // how long a minute of its rates lasts, in whole seconds; default: a minute, which only tests change
}

// Rules are the policies that hold for a run, ready to be asked. They never change, so any number of goroutines may use them.
// Nil Rules allow everything.
type Rules struct {
	layers []layer
}

type layer struct {
	source  string
	tools   *messages.ToolRules
	hosts   *hosts.List
	content []content
	approve []approve
	rates   []rate
	taint   *messages.TaintRule
	events  *messages.EventRules
	memory  string
	retain  []messages.RetainRule
}

type content struct {
	messages.ContentRule

	find func(string) []span
}

type approve struct {
	messages.ApproveRule

	pattern *regexp.Regexp
	hosts   hosts.List
}

// NewRules returns the rules of checked policies, nil when there are none.
func NewRules(layers ...Layer) (*Rules, error) {
	r := &Rules{}
	for _, l := range layers {
		if l.Policy == nil {
			continue
		}
		made, err := newLayer(l)
		if err != nil {
			return nil, fmt.Errorf("policy of %s: %w", l.Source, err)
		}
		r.layers = append(r.layers, made)
	}
	if len(r.layers) == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	return r, nil
}

// For returns the rules for runs of an agent: those of the operator, of the agents above it, and its own.
func For(operator []Layer, above []record.RulesFor, agent *messages.Definition) (*Rules, error) {
	all := slices.Clone(operator)
	for _, a := range above {
		all = append(all, Layer{Source: "agent " + a.Agent, Policy: a.Policy})
	}
	return NewRules(append(all, Layer{Source: "agent " + agent.Name, Policy: agent.Policy})...)
}

func newLayer(l Layer) (made layer, err error) {
	p := l.Policy
	made = layer{source: l.Source, tools: p.Tools, taint: p.Taint, events: p.Events, memory: p.Memory, retain: p.Retain}
	if p.Hosts != nil {
		listed, err := hosts.Parse(p.Hosts)
		if err != nil {
			return made, err
		}
		made.hosts = &listed
	}
	for _, c := range p.Content {
		find, err := finder(&c)
		if err != nil {
			return made, err
		}
		made.content = append(made.content, content{c, find})
	}
	made.rates = ratesOf(&l)
	for _, a := range p.Approve {
		rule := approve{ApproveRule: a}
		if rule.pattern, err = regexp.Compile(a.Pattern); err != nil {
			return made, err
		}
		if rule.hosts, err = hosts.Parse(a.Hosts); err != nil {
			return made, err
		}
		made.approve = append(made.approve, rule)
	}
	return made, nil
}

// finder finds what a content rule is about: places in a text, in order.
func finder(c *messages.ContentRule) (func(string) []span, error) {
	find := func(s string) []sensitive.Span { return sensitive.Find(c.Category, s) }
	if c.Pattern != "" {
		re, err := regexp.Compile(c.Pattern)
		if err != nil {
			return nil, err
		}
		match := func(s string) (found []sensitive.Span) {
			for _, at := range re.FindAllStringIndex(s, -1) {
				found = append(found, sensitive.Span{Start: at[0], End: at[1]})
			}
			return found
		}
		find = func(s string) []sensitive.Span { return sensitive.Both(s, match) }
	}
	return func(s string) (found []span) {
		for _, at := range find(s) {
			found = append(found, span{at.Start, at.End})
		}
		return found
	}, nil
}

// Finding is what a rule makes of something: it blocks or redacts it, or has a call wait for a person. The reason names the
// rule and repeats nothing of what it hides.
type Finding struct {
	Point  messages.PolicyPoint
	Action string // messages.PolicyBlock, PolicyRedact or PolicyAsk
	Rule   string
	Source string
	Reason string
	Edit   bool // of PolicyAsk: the call may be approved with other arguments
}

func (l *layer) finding(at messages.PolicyPoint, action, rule, format string, args ...any) Finding {
	reason := fmt.Sprintf(format, args...)
	return Finding{Point: at, Action: action, Rule: rule, Source: l.source, Reason: fmt.Sprintf("%s (rule %s of the %s)", reason, rule, l.source)}
}

// maxRounds bounds how often a text is looked at again.
const maxRounds = 8

// Text applies the content rules of a point. Blocked text comes back empty, with the finding that blocks it last. What a rule finds
// only once another has taken something out is taken out too.
func (r *Rules) Text(at messages.PolicyPoint, tool, text string) (out string, found []Finding, blocked bool) {
	for range maxRounds {
		next, fs, stop := r.once(at, tool, text)
		for _, f := range fs {
			if !slices.Contains(found, f) {
				found = append(found, f)
			}
		}
		if stop || next == text {
			return next, found, stop
		}
		text = next
	}
	return Mark, found, false // a rule finds the mark itself
}

// once is one round of Text.
func (r *Rules) once(at messages.PolicyPoint, tool, text string) (out string, found []Finding, blocked bool) {
	if r == nil || text == "" {
		return text, nil, false
	}
	var hidden []span
	for i := range r.layers {
		l := &r.layers[i]
		for j := range l.content {
			c := &l.content[j]
			if !c.applies(at, tool) {
				continue
			}
			places := c.find(text)
			if len(places) == 0 {
				continue
			}
			if c.Action == messages.PolicyBlock {
				return "", append(found, l.finding(at, messages.PolicyBlock, c.Name, "it holds %s, which is not allowed here", c.what())), true
			}
			hidden = append(hidden, places...)
			found = append(found, l.finding(at, messages.PolicyRedact, c.Name, "%s was taken out", c.what()))
		}
	}
	if len(hidden) == 0 {
		return text, nil, false
	}
	slices.SortFunc(hidden, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	joined := hidden[:0]
	for _, next := range hidden {
		joined = join(joined, next)
	}
	return string(cover(nil, text, joined)), found, false
}

// Judges reports whether a content rule looks at a point.
func (r *Rules) Judges(at messages.PolicyPoint) bool {
	if r == nil {
		return false
	}
	return slices.ContainsFunc(r.layers, func(l layer) bool {
		return slices.ContainsFunc(l.content, func(c content) bool { return len(c.At) == 0 || slices.Contains(c.At, at) })
	})
}

func (c *content) applies(at messages.PolicyPoint, tool string) bool {
	if len(c.At) > 0 && !slices.Contains(c.At, at) {
		return false
	}
	return at == messages.PolicyReply || at == messages.PolicyInput || len(c.Tools) == 0 || messages.Names(c.Tools, tool)
}

// what the rule looks for, in words.
func (c *content) what() string {
	switch c.Category {
	case "":
		return "text that matches a pattern"
	case "email":
		return "an e-mail address"
	case "phone":
		return "a phone number"
	case "card":
		return "a card number"
	case "iban":
		return "an IBAN"
	case "ssn":
		return "a social security number"
	default:
		return "a key or token"
	}
}

// Call judges a call that a model asks for, before its arguments are checked against the tool's schema. It returns the
// arguments to use in place of those given. A refusal is the finding that forbids the call.
func (r *Rules) Call(tool, arguments string) (use string, found []Finding, refusal *Finding) {
	if r == nil {
		return arguments, nil, nil
	}
	for i := range r.layers {
		l := &r.layers[i]
		if t := l.tools; t != nil {
			switch {
			case messages.Names(t.Deny, tool):
				return "", nil, new(l.finding(messages.PolicyPlan, messages.PolicyBlock, "tools.deny", "the tool %s is not allowed", tool))
			case t.Allow != nil && !messages.Names(t.Allow, tool):
				return "", nil, new(l.finding(messages.PolicyPlan, messages.PolicyBlock, "tools.allow", "the tool %s is not allowed", tool))
			}
		}
	}
	for _, at := range r.namedIn(arguments) {
		if f := r.Host(messages.PolicyArguments, at); f != nil {
			return "", nil, f
		}
	}
	return r.JSON(messages.PolicyArguments, tool, arguments)
}

// Host judges a host that is about to be called, as hosts.Endpoint writes it: in the arguments of a call, or that a tool calls anyway.
// It returns the finding that forbids it.
func (r *Rules) Host(point messages.PolicyPoint, endpoint string) *Finding {
	if r == nil {
		return nil
	}
	for i := range r.layers {
		if l := &r.layers[i]; l.hosts != nil && !l.hosts.Lists(endpoint) {
			return new(l.finding(point, messages.PolicyBlock, "hosts", "the host %s is not allowed", strict.Shown(endpoint)))
		}
	}
	return nil
}

// JSON applies the content rules of a point to each text in a JSON value, names of fields and numbers included. What is not JSON
// is one text. The refusal is the finding that blocks it.
func (r *Rules) JSON(at messages.PolicyPoint, tool, value string) (use string, found []Finding, refusal *Finding) {
	if r == nil || value == "" {
		return value, nil, nil
	}
	var blocked *Finding
	judge := func(text string) string {
		out, fs, b := r.Text(at, tool, text)
		for _, f := range fs {
			if !slices.Contains(found, f) {
				found = append(found, f)
			}
		}
		if b && blocked == nil {
			blocked = &fs[len(fs)-1]
		}
		return out
	}
	tree, err := parse(value)
	if err != nil {
		if use = judge(value); use != value && json.Valid([]byte(value)) && !json.Valid([]byte(use)) {
			use = "{}"
		}
	} else if changed, did := walk(tree, judge); did {
		data, err := json.Marshal(changed)
		if err != nil {
			data = []byte("{}")
		}
		use = string(data)
	} else {
		use = value
	}
	if blocked != nil {
		return "", nil, blocked
	}
	return use, found, nil
}

// parse reads JSON. Of a field that stands twice a tree has only one, and the text holds both: such a text is none.
func parse(arguments string) (tree any, err error) {
	var whole json.RawMessage
	if err := strict.Decode([]byte(arguments), &whole); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(strings.NewReader(arguments))
	dec.UseNumber()
	err = dec.Decode(&tree)
	return tree, err
}

// walk replaces every text in a tree by what judge makes of it, and reports whether any changed. A number is a text too.
func walk(v any, judge func(string) string) (_ any, changed bool) {
	switch v := v.(type) {
	case string:
		out := judge(v)
		return out, out != v
	case json.Number:
		if out := judge(v.String()); out != v.String() {
			return out, true
		}
	case []any:
		for i := range v {
			out, c := walk(v[i], judge)
			v[i], changed = out, changed || c
		}
		return v, changed
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out, c := walk(v[key], judge)
			if name := judge(key); name != key {
				delete(v, key)
				key, c = name, true
			}
			v[key], changed = out, changed || c
		}
		return v, changed
	}
	return v, false
}

// Asked is a call that a rule may have wait for a person.
type Asked struct {
	Tool      string
	Arguments json.RawMessage // that passed the tool's schema
	First     bool            // of its tool in the run
	Cost      float64         // of the run so far, in US dollars
	Had       []string        // tools whose results the run has had
}

// Asks returns the first rule that has a call wait for a person, nil when none does. The call may be approved with other arguments
// only if each rule that asks lets it be.
func (r *Rules) Asks(c Asked) (first *Finding) {
	if r == nil {
		return nil
	}
	edit := true
	asks := func(l *layer, at messages.PolicyPoint, rule, why string, lets bool) {
		if edit = edit && lets; first == nil {
			first = new(l.finding(at, messages.PolicyAsk, rule, "%s", why))
		}
	}
	for i := range r.layers {
		l := &r.layers[i]
		for j := range l.approve {
			if a := &l.approve[j]; a.fits(&c) {
				asks(l, messages.PolicyArguments, a.Name, "a person must agree to this call", a.Edit)
			}
		}
		if t := l.taint; t != nil && messages.Names(t.Egress, c.Tool) && anyNamed(t.Private, c.Had) && anyNamed(t.Untrusted, c.Had) {
			asks(l, messages.PolicyPlan, "taint", "the run has read private and untrusted data, so a person must agree to what leaves it", false)
		}
	}
	if first != nil {
		first.Edit = edit
	}
	return first
}

func anyNamed(list, tools []string) bool {
	return slices.ContainsFunc(tools, func(t string) bool { return messages.Names(list, t) })
}

// namedIn are the endpoints in the arguments of a call, if a rule is about them.
func (r *Rules) namedIn(arguments string) []string {
	if !slices.ContainsFunc(r.layers, func(l layer) bool { return l.hosts != nil }) {
		return nil
	}
	return endpoints(arguments)
}

// Redirect judges a host that a redirect leads a call to. It is forbidden as one in the arguments is, and where a rule has calls of
// the host wait for a person, who was not asked about it.
func (r *Rules) Redirect(c Asked, endpoint string) *Finding {
	if f := r.Host(messages.PolicyOutput, endpoint); f != nil || r == nil {
		return f
	}
	for i := range r.layers {
		l := &r.layers[i]
		for j := range l.approve {
			a := &l.approve[j]
			if a.hosts.Lists(endpoint) && a.fitsBut(&c) && !slices.ContainsFunc(endpoints(string(c.Arguments)), a.hosts.Lists) {
				return new(l.finding(messages.PolicyOutput, messages.PolicyBlock, a.Name,
					"a person must agree to calls of the host %s, so name it in the call", strict.Shown(endpoint)))
			}
		}
	}
	return nil
}

func (a *approve) fits(c *Asked) bool {
	return a.fitsBut(c) && (len(a.Hosts) == 0 || slices.ContainsFunc(endpoints(string(c.Arguments)), a.hosts.Lists))
}

// fitsBut is fits without the hosts.
func (a *approve) fitsBut(c *Asked) bool {
	if !messages.Names([]string{a.Tool}, c.Tool) || a.First && !c.First || a.CostAbove != nil && c.Cost <= *a.CostAbove {
		return false
	}
	return a.Pattern == "" || slices.ContainsFunc(argument(c.Arguments, a.Argument), a.pattern.MatchString)
}

// argument is what a pattern is matched with: the value at a path of dots in the arguments as JSON, and each text in it. In JSON alone
// a text could be written in many ways. A list stands for each of its values.
func argument(args json.RawMessage, path string) (texts []string) {
	tree, err := parse(string(args))
	if err != nil {
		return nil
	}
	at := []any{tree}
	if path != "" {
		for part := range strings.SplitSeq(path, ".") {
			at = fields(at, part)
		}
	}
	for _, v := range at {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
			continue
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err == nil {
			texts = append(texts, string(bytes.TrimSpace(b.Bytes())))
		}
		walk(v, func(text string) string {
			texts = append(texts, text)
			return text
		})
	}
	if path == "" {
		texts = append(texts, string(args))
	}
	return texts
}

// fields are the values of a field of objects, and of those in lists.
func fields(in []any, name string) (out []any) {
	for _, v := range in {
		switch v := v.(type) {
		case map[string]any:
			if field, ok := v[name]; ok {
				out = append(out, field)
			}
		case []any:
			out = append(out, fields(v, name)...)
		}
	}
	return out
}
