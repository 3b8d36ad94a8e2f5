// Package agenttest is for tests of agents, tools and hooks: it stubs the model, runs a task in memory on the real
// loop, keeps every event, and says in short words what the run did.
//
//	run := agenttest.Run(t, agenttest.Config{Config: embed.Config{
//		Model: agenttest.Replies(agenttest.Call("add", `{"a":1,"b":2}`), agenttest.Text("It is 3.")),
//		Tools: []tools.Tool{adder},
//	}}, "What is 1 + 2?")
//	run.Want(t, "model", "tool add", "model", "completed")
//
// [Replies] plays replies in order, [Func] makes them of each request. [Play] is Run without a testing.TB. [Programs] and [ProgramFunc]
// stand for the sandbox of agents that use shell or run_code.
//
// The same test gives the same events each time: unless the task or the Config say otherwise the seed is 1, and the
// clock begins at [Start] and advances by a millisecond each time it is read.
package agenttest
