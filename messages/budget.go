package messages

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Caps bound what one run may use. A cap that is 0, or absent, bounds nothing.
type Caps struct {
	ModelCalls int      `json:"modelCalls,omitempty" minimum:"0" maximum:"1000000"`                                             // replies
	ToolCalls  int      `json:"toolCalls,omitempty" minimum:"0" maximum:"1000000"`                                              // calls begun
	Tokens     int64    `json:"tokens,omitempty" minimum:"0" maximum:"1000000000000"`                                           // as Usage.Total counts them
	Cost       *float64 `json:"cost,omitempty" minimum:"0" maximum:"1000000000"`                                                // in US dollars; 0: nothing but what is known to be free
	WallTime   Duration `json:"wallTime,omitempty" pattern:"^[+]?(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"` // since the run began, waiting included
}

// Budget is what an agent grants each of its runs, and what happens when a run needs more.
type Budget struct {
	Caps

	Soft         float64 `json:"soft,omitempty"`         // share of a cap, above 0 and below 1, from which there is a budget_warning; default none
	OnBudget     string  `json:"onBudget,omitempty"`     // "stop" (default): the run fails; "ask": it waits for an answer. Time that is over always stops
	UnknownPrice string  `json:"unknownPrice,omitempty"` // with a cap of cost: "refuse" (default) calls whose price is unknown, or "allow" them, uncounted
}

// Values of Budget.OnBudget and Budget.UnknownPrice.
const (
	OnBudgetStop       = "stop"
	OnBudgetAsk        = "ask"
	UnknownPriceRefuse = "refuse"
	UnknownPriceAllow  = "allow"
)

// AnswerContinue is the answer to a park with the reason ReasonBudget that grants the cap in Parked.Limit once more, as no
// text at all does. An answer that is an error ends the run; any other text is no answer, and the run asks again.
const AnswerContinue = "continue"

// Names of the caps in records, events and sentences.
const (
	CapModelCalls = "modelCalls"
	CapToolCalls  = "toolCalls"
	CapTokens     = "tokens"
	CapCost       = "cost"
	CapWallTime   = "wallTime"
)

// Bounds of the caps.
const (
	maxCalls    = 1_000_000
	maxTokens   = 1_000_000_000_000
	maxCost     = 1_000_000_000
	maxWallTime = Duration(366 * 24 * time.Hour)
)

// Caps are those of a run: the agent's, which its task may narrow and cannot widen.
func (d *Definition) Caps(l *Limits) Caps {
	var c Caps
	if d.Budget != nil {
		c = d.Budget.Caps
	}
	if l == nil {
		return c
	}
	c.ModelCalls, c.ToolCalls = narrow(c.ModelCalls, l.ModelCalls), narrow(c.ToolCalls, l.ToolCalls)
	c.Tokens, c.WallTime = narrow(c.Tokens, l.Tokens), narrow(c.WallTime, l.WallTime)
	if l.Cost != nil && (c.Cost == nil || *l.Cost < *c.Cost) {
		c.Cost = l.Cost
	}
	return c
}

func narrow[N int | int64 | Duration](granted, wanted N) N {
	if granted == 0 || wanted > 0 && wanted < granted {
		return wanted
	}
	return granted
}

// check returns a *FieldError; path is that of the caps, with a dot behind it.
func (c *Caps) check(path string) error {
	for _, f := range []struct {
		name   string
		n, max int64
	}{
		{CapModelCalls, int64(c.ModelCalls), maxCalls},
		{CapToolCalls, int64(c.ToolCalls), maxCalls},
		{CapTokens, c.Tokens, maxTokens},
	} {
		if f.n < 0 || f.n > f.max {
			return &FieldError{Field: path + f.name, Reason: fmt.Sprintf("must be 0 to %d; 0 bounds nothing", f.max)}
		}
	}
	if c.Cost != nil && (!(*c.Cost >= 0) || *c.Cost > maxCost) {
		return &FieldError{Field: path + CapCost, Reason: fmt.Sprintf("must be 0 to %d US dollars", maxCost)}
	}
	if c.WallTime < 0 || c.WallTime > maxWallTime {
		return &FieldError{Field: path + CapWallTime, Reason: fmt.Sprintf("must be 0 to %s; 0 bounds nothing", maxWallTime)}
	}
	return nil
}

func (b *Budget) check(path string) error {
	if err := b.Caps.check(path); err != nil {
		return err
	}
	switch {
	case b.Soft != 0 && !(b.Soft > 0 && b.Soft < 1):
		return &FieldError{Field: path + "soft", Reason: "must be above 0 and below 1, such as 0.8"}
	case b.OnBudget != "" && b.OnBudget != OnBudgetStop && b.OnBudget != OnBudgetAsk:
		return &FieldError{Field: path + "onBudget", Reason: "must be stop or ask"}
	case b.UnknownPrice != "" && b.UnknownPrice != UnknownPriceRefuse && b.UnknownPrice != UnknownPriceAllow:
		return &FieldError{Field: path + "unknownPrice", Reason: "must be refuse or allow"}
	}
	return nil
}

// AddCost adds two amounts of US dollars. Amounts are rounded to a billionth of a dollar, so that a sum does not depend on the
// order of its parts.
func AddCost(a, b float64) float64 { return RoundCost(a + b) }

// RoundCost rounds to a billionth of a dollar.
func RoundCost(usd float64) float64 {
	const unit = 1e9
	return math.Round(usd*unit) / unit
}

// Money is US dollars as people write them: never with an exponent, to the cent from one dollar on, and below that with
// as many digits as say something.
func Money(usd float64) string {
	const digits, most = 4, 12 // significant below a dollar; behind the point
	switch size := math.Abs(usd); {
	case math.IsNaN(usd) || math.IsInf(usd, 0):
		return "$?"
	case size >= 1 || size == 0:
		return "$" + strconv.FormatFloat(usd, 'f', 2, 64)
	default:
		behind := min(digits-1-int(math.Floor(math.Log10(size))), most)
		text := strings.TrimRight(strconv.FormatFloat(usd, 'f', behind, 64), "0")
		if point := strings.IndexByte(text, '.'); len(text)-point < len(".00") {
			text += strings.Repeat("0", len(".00")-(len(text)-point))
		}
		return "$" + text
	}
}
