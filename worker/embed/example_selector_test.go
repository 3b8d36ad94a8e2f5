package embed_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
)

// cheapest puts the models that cost least first.
type cheapest struct{}

func (cheapest) Select(_ context.Context, _ model.Request, from []model.Candidate) []model.Candidate {
	slices.SortStableFunc(from, func(a, b model.Candidate) int { return int(a.Out - b.Out) })
	return from
}

// A custom selector chooses among the models of an agent, which are offered in the agent's order; those that cannot take the
// request are left out before. The next is asked when one fails.
func Example_selector() {
	prices := map[string]float64{"large": 10, "small": 1}
	router, err := model.NewRouter(model.RouterConfig{
		Endpoints: []model.Endpoint{
			{Name: "large", Model: "l", Provider: agenttest.Func(func(model.Request) agenttest.Reply { return agenttest.Text("I am large.") })},
			{Name: "small", Model: "s", Provider: agenttest.Func(func(model.Request) agenttest.Reply { return agenttest.Text("I am small.") })},
		},
		Prices:   func(provider, _ string) (in, out float64, ok bool) { return 0, prices[provider], true },
		Selector: cheapest{},
	})
	if err != nil {
		panic(err)
	}
	service, err := embed.New(embed.Config{Model: router, Agent: messages.Definition{Models: []string{"large", "small"}}})
	if err != nil {
		panic(err)
	}
	result, err := service.RunOnce(context.Background(), messages.Task{Input: messages.TextInput("Who are you?")})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Result)
	// Output: I am small.
}
