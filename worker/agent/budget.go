package agent

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// Price is what a model call with this usage costs, in US dollars; false: it is unknown. With an empty provider the
// model is the name that an agent gives, which may be empty too.
type Price func(provider, model string, u messages.Usage) (usd float64, ok bool)

// Overdue is the end of a run whose time is over, or whose conversation has grown too large; nil: it may continue.
func (s *State) Overdue(now time.Time) *Finish {
	f := s.late(now)
	if f == nil {
		f = s.outgrown()
	}
	if f != nil {
		s.leave(f)
	}
	return f
}

// Afford holds an action that does not end the run against the caps of its budget. It returns the action itself, or, when
// the action may exceed a cap, the end or the question that takes its place; and the warnings that are due.
//
// What a model call uses is estimated: the size of its input, by what the last reply said it was, and as much output as
// the agent allows. An estimate is no promise: the one call that was let through may still exceed a cap.
func (s *State) Afford(next Action, now time.Time, price Price) (instead Action, warned []*record.BudgetWarned) {
	caps := s.Agent.Caps(s.Task.Limits)
	if caps == (messages.Caps{}) {
		return next, nil
	}
	warned = s.warnings(caps, now)
	switch a := next.(type) {
	case *CallModel:
		instead = s.model(a, caps, price)
	case *CallTools:
		instead = s.tools(a, caps)
	default:
		return next, warned
	}
	if f, ends := instead.(*Finish); ends {
		s.leave(f)
	}
	return instead, warned
}

// UntilEnd lets no park outlast the time of the run.
func (s *State) UntilEnd(p *record.Parked) {
	if at, _, ok := s.Ends(); ok && (p.Until == nil || at.Before(*p.Until)) {
		p.Until = new(at.UTC())
	}
}

// Ends is when the time of the run is over, and the code of a run that ends then.
func (s *State) Ends() (end time.Time, code messages.Code, ok bool) {
	if d := s.Task.Deadline; d != nil {
		end, code, ok = *d, messages.CodeDeadline, true
	}
	if wall := s.Agent.Caps(s.Task.Limits).WallTime; wall > 0 && !s.StartedAt.IsZero() {
		if over := s.StartedAt.Add(time.Duration(wall)); !ok || over.Before(end) {
			end, code, ok = over, messages.CodeBudget, true
		}
	}
	return end, code, ok
}

func (s *State) late(now time.Time) *Finish {
	end, code, ok := s.Ends()
	switch {
	case !ok || now.Before(end):
		return nil
	case code == messages.CodeDeadline:
		f := fail(code, fmt.Sprintf("the deadline of the task, %s, has passed", end.UTC().Format(time.RFC3339)))
		f.Err.Info = map[string]any{"deadline": end.UTC().Format(time.RFC3339Nano)}
		return f
	default:
		wall := s.Agent.Caps(s.Task.Limits).WallTime
		f := fail(code, fmt.Sprintf("%s: the run has taken the %s that it may take", messages.CapWallTime, wall))
		f.Err.Info = map[string]any{"limit": messages.CapWallTime, "allowed": time.Duration(wall).Seconds()}
		return f
	}
}

// use is what the next action needs of one cap.
type use struct {
	limit                  string
	spent, needed, allowed float64
	estimated              bool
}

// over is the first of the uses that goes beyond its cap.
func over(uses ...use) *use {
	for i, u := range uses {
		if u.allowed >= 0 && u.spent+u.needed > u.allowed {
			return &uses[i]
		}
	}
	return nil
}

// none is the allowed of a cap that bounds nothing.
const none = -1

// granted is a cap with what people added to it. 0 bounds nothing.
func (s *State) granted(limit string, n float64) float64 {
	if n == 0 {
		return none
	}
	return n * float64(1+s.Extended[limit])
}

func (s *State) grantedCost(usd *float64) float64 {
	if usd == nil {
		return none
	}
	return messages.RoundCost(*usd * float64(1+s.Extended[messages.CapCost]))
}

func (s *State) model(a *CallModel, caps messages.Caps, price Price) Action {
	need := messages.Usage{Output: int64(s.Agent.MaxTokens)}
	if caps.Tokens > 0 || caps.Cost != nil {
		need.Input = s.inputTokens(a)
	}
	need.Total = need.Input + need.Output
	usd := 0.0
	if caps.Cost != nil {
		var known bool
		if usd, known = s.price(need, price); !known && !s.allowsUnknown() {
			return fail(messages.CodeBudget, fmt.Sprintf(
				"%s: the run may cost %s at most, and the price of %s is unknown; add it to LONGSHORE_PRICES, or let the agent say unknownPrice: allow",
				messages.CapCost, messages.Money(*caps.Cost), s.modelName()))
		}
	}
	u := over(
		use{messages.CapModelCalls, float64(len(s.ModelCalls)), 1, s.granted(messages.CapModelCalls, float64(caps.ModelCalls)), false},
		use{messages.CapTokens, s.tokensSpent(), float64(need.Total), s.granted(messages.CapTokens, float64(caps.Tokens)), true},
		use{messages.CapCost, s.costSpent(), usd, s.grantedCost(caps.Cost), true},
	)
	if u == nil {
		return a
	}
	return s.stop(u, "the next model call")
}

func (s *State) tools(a *CallTools, caps messages.Caps) Action {
	begin := 0
	for _, c := range s.Open {
		if c.Started == "" && c.Result == nil && c.Answer == nil {
			begin++
		}
	}
	u := over(use{messages.CapToolCalls, float64(s.ToolCalls), float64(begin), s.granted(messages.CapToolCalls, float64(caps.ToolCalls)), false})
	if u == nil {
		return a
	}
	return s.stop(u, "the tool calls of this step")
}

// stop ends the run before it exceeds a cap, or asks whether it may.
func (s *State) stop(u *use, what string) Action {
	needs := "needs"
	switch {
	case u.estimated:
		needs = "may need"
	case strings.HasSuffix(what, "step"):
		needs = "need"
	}
	text := fmt.Sprintf("%s: %s of %s used, and %s %s %s", u.limit,
		amount(u.limit, u.spent), amount(u.limit, u.allowed), what, needs, amount(u.limit, u.needed))
	if b := s.Agent.Budget; b != nil && b.OnBudget == messages.OnBudgetAsk {
		return &Park{Parked: record.Parked{Reason: queue.ReasonBudget, Limit: u.limit, Question: text}}
	}
	f := fail(messages.CodeBudget, text)
	f.Err.Info = map[string]any{"limit": u.limit, "spent": u.spent, "needed": u.needed, "allowed": u.allowed}
	return f
}

func amount(limit string, n float64) string {
	if limit == messages.CapCost {
		return messages.Money(n)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// price is the estimated cost of the next model call. The model may be the one that answered last or the one that the
// agent names: the dearer counts.
func (s *State) price(u messages.Usage, price Price) (usd float64, known bool) {
	if price == nil || s.CostUnknown && !s.allowsUnknown() {
		return 0, false
	}
	usd, known = s.dearest(u, price)
	if n := len(s.ModelCalls); n > 0 {
		last := &s.ModelCalls[n-1]
		if again, ok := price(last.Provider, last.Model, u); ok && (!known || again > usd) {
			usd, known = again, true
		}
	}
	return messages.RoundCost(usd), known
}

func (s *State) allowsUnknown() bool {
	b := s.Agent.Budget
	return b != nil && b.UnknownPrice == messages.UnknownPriceAllow
}

// modelName is how an error calls the model of the next call.
func (s *State) modelName() string {
	name := s.Agent.Model
	for i := range s.ModelCalls {
		if c := &s.ModelCalls[i]; c.Cost == nil && c.Model != "" {
			name = c.Provider + "/" + c.Model
		}
	}
	if name == "" {
		return "the worker's default model"
	}
	return "model " + strconv.Quote(strict.Clip(name, 128))
}

// How tokens are estimated.
const (
	bytesPerToken = 4
	imageBytes    = 1000 * bytesPerToken // an image is billed by its size in pixels, not in bytes
	maxPerByte    = 1.0                  // tokens; beyond that the provider counts something else
)

// inputTokens estimates the input of a call: its size in bytes, times what the last reply's usage says a byte is, or
// one token for four bytes before there is one.
func (s *State) inputTokens(a *CallModel) int64 {
	perByte := 1.0 / bytesPerToken
	if n := len(s.ModelCalls); n > 0 && s.ModelCalls[n-1].Usage.Input > 0 {
		for i, m := range slices.Backward(s.Transcript) {
			if m.Role == messages.RoleAssistant {
				before, _ := s.said()
				for j := range s.Transcript[i:] { // the reply, and what came after it
					before -= sizeOf(s.Transcript[i+j].Content)
				}
				sent := before + sizeOfTools(a.Tools)
				perByte = min(float64(s.ModelCalls[n-1].Usage.Input)/float64(max(sent, 1)), maxPerByte)
				break
			}
		}
	}
	return int64(math.Ceil(float64(s.tallyOf(a.Messages).text+sizeOfTools(a.Tools)) * perByte))
}

// sizeOfTools is about how many bytes of text they are in a request.
func sizeOfTools(specs []messages.ToolSpec) int {
	n := 0
	for i := range specs {
		n += len(specs[i].Name) + len(specs[i].Description) + len(specs[i].InputSchema)
	}
	return n
}

func sizeOf(blocks []messages.Block) int {
	n := 0
	for _, b := range blocks {
		n += bytesPerToken + len(b.Text) // what holds a block costs about a token
		switch {
		case b.Image != nil:
			n += imageBytes
		case b.File != nil:
			n += bytesPerToken * b.File.Tokens()
		case b.Reasoning != nil:
			n += len(b.Reasoning.Text) + len(b.Reasoning.Opaque)
		case b.ToolCall != nil:
			n += len(b.ToolCall.Name) + len(b.ToolCall.Arguments)
		case b.ToolResult != nil:
			n += sizeOf(b.ToolResult.Content)
		}
	}
	return n
}

// warnings returns a record for each cap whose soft limit is exceeded and was not reported yet.
func (s *State) warnings(caps messages.Caps, now time.Time) []*record.BudgetWarned {
	if s.Agent.Budget == nil || s.Agent.Budget.Soft == 0 {
		return nil
	}
	var out []*record.BudgetWarned
	warn := func(limit string, spent, allowed float64) {
		if allowed > 0 && spent >= s.Agent.Budget.Soft*allowed && !slices.Contains(s.Warned, limit) {
			out = append(out, &record.BudgetWarned{Limit: limit, Spent: spent, Allowed: allowed})
		}
	}
	warn(messages.CapModelCalls, float64(len(s.ModelCalls)), s.granted(messages.CapModelCalls, float64(caps.ModelCalls)))
	warn(messages.CapToolCalls, float64(s.ToolCalls), s.granted(messages.CapToolCalls, float64(caps.ToolCalls)))
	warn(messages.CapTokens, s.tokensSpent(), s.granted(messages.CapTokens, float64(caps.Tokens)))
	warn(messages.CapCost, s.costSpent(), s.grantedCost(caps.Cost))
	if !s.StartedAt.IsZero() {
		warn(messages.CapWallTime, now.Sub(s.StartedAt).Seconds(), time.Duration(caps.WallTime).Seconds())
	}
	return out
}

// paid adds what a model call cost.
func (s *State) paid(usd *float64) {
	if usd == nil {
		s.CostUnknown = true
		return
	}
	s.Cost = messages.AddCost(s.Cost, *usd)
}

// costEstimate is the cost of the whole run, nil when that of any call is unknown.
func (s *State) costEstimate() *float64 {
	if s.CostUnknown {
		return nil
	}
	return new(s.Cost)
}

// more takes an answer to the question whether the run may go beyond its budget; false: it answers something else.
func (s *State) more(r *record.Answered) bool {
	p := s.Parked
	if p == nil || s.Head.ParkSeq != r.Park || p.Reason != queue.ReasonBudget || p.Call != "" {
		return false
	}
	m := messages.Message{Content: r.Content}
	switch said := strings.TrimSpace(m.Text()); {
	case r.IsError:
		text := p.Question + "; more was denied"
		if r.By != "" {
			text += " by " + strict.Clip(r.By, 128)
		}
		s.Failure = &messages.RunError{Code: messages.CodeBudget, Message: text, Info: map[string]any{"limit": p.Limit}}
	case said == "" || strings.EqualFold(said, messages.AnswerContinue):
		if s.Extended == nil {
			s.Extended = map[string]int{}
		}
		s.Extended[p.Limit]++
	}
	s.Parked = nil // one answer counts
	return true
}

// dearest is the price of the dearest of the agent's models that may be asked; unknown when one of them is. When none may
// be asked it is 0: the router says why.
func (s *State) dearest(u messages.Usage, price Price) (usd float64, known bool) {
	if len(s.Agent.Models) == 0 {
		return price("", s.Agent.Model, u)
	}
	for _, name := range s.Agent.Models {
		if s.tooDear(name, price) {
			continue
		}
		each, ok := price("", name, u)
		if !ok {
			return 0, false
		}
		usd = max(usd, each)
	}
	return usd, true
}

// tooDear reports whether the router passes a model over because of the agent's maxPrice.
func (s *State) tooDear(name string, price Price) bool {
	if s.Agent.MaxPrice == nil {
		return false
	}
	const million = 1_000_000
	for _, u := range []messages.Usage{{Input: million}, {Output: million}} {
		if usd, ok := price("", name, u); !ok || usd > *s.Agent.MaxPrice {
			return true
		}
	}
	return false
}
