package embed_test

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
	"github.com/longshore-run/longshore/worker/model"
)

// An agent begins its runs with what long-term memory holds about the task. The result says what that was.
func ExampleConfig_memory() {
	memory := memstore.New(memstore.Config{})
	place := longterm.Place{Tenant: messages.DefaultTenant, Collection: messages.DefaultCollection}
	if err := memory.Write(context.Background(), place, []longterm.Item{
		{ID: "pier", Text: "The ferry to Malmo leaves from pier 4.", Source: longterm.Source{Document: "harbour.md"}},
		{ID: "cafe", Text: "The café closes at six."},
	}); err != nil {
		panic(err)
	}
	service, err := embed.New(embed.Config{
		Model: agenttest.Func(func(r model.Request) agenttest.Reply {
			return agenttest.Text(fmt.Sprintf("told %d message beside the task", r.Recalled))
		}),
		Memory: memory,
		Agent:  messages.Definition{Name: "harbour", Memory: &messages.MemoryPolicy{Recall: &messages.RecallPolicy{}}},
	})
	if err != nil {
		panic(err)
	}
	result, err := service.RunOnce(context.Background(), messages.Task{Input: messages.TextInput("Where does the ferry to Malmo leave?")})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Result)
	for _, m := range result.Provenance.Memories {
		fmt.Println(m.ID, "of", m.Document)
	}
	// Output:
	// told 1 message beside the task
	// pier of harbour.md
}
