package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
)

// rate is one window of a rate rule.
type rate struct {
	tools []string
	rate  queue.Rate
}

// ratesOf are the rates of a layer. The key is made of the source, as "tenant acme", so that a rate of the fleet counts all runs, that of
// a tenant the tenant's and that of an agent the agent's.
func ratesOf(l *Layer) (out []rate) {
	source, minute := l.Source, cmp.Or(l.Minute, time.Minute)
	for _, r := range l.Policy.Rates {
		add := func(limit *int, window time.Duration, in string) {
			if limit == nil {
				return
			}
			calls := "calls"
			if *limit == 1 {
				calls = "call"
			}
			out = append(out, rate{[]string{r.Tool}, queue.Rate{
				Key: strings.ReplaceAll(source, " ", ":") + ":" + r.Name, Limit: *limit, Window: window,
				Text: fmt.Sprintf("rule %s of %s allows %d %s of %s in %s", r.Name, the(source), *limit, calls, r.Tool, in),
			}})
		}
		add(r.PerHour, 60*minute, "an hour") // likely to be full for longer
		add(r.PerMinute, minute, "a minute")
	}
	return out
}

func the(source string) string {
	if strings.Contains(source, " ") {
		return source
	}
	return "the " + source
}

// Rates are the rates of a tool, those of the agent first and those of the fleet last: the fewer runs share one, the likelier it is
// to be full.
func (r *Rules) Rates(tool string) (out []queue.Rate) {
	if r == nil {
		return nil
	}
	for _, l := range slices.Backward(r.layers) {
		for j := range l.rates {
			if one := &l.rates[j]; messages.Names(one.tools, tool) {
				out = with(out, one.rate)
			}
		}
	}
	return out
}

// with adds a rate. One that is there already, as when an agent delegates to itself, is counted once, with the smaller limit.
func with(all []queue.Rate, r queue.Rate) []queue.Rate {
	for i := range all {
		if all[i].Key == r.Key && all[i].Window == r.Window {
			if r.Limit < all[i].Limit {
				all[i] = r
			}
			return all
		}
	}
	return append(all, r)
}
