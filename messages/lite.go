package messages

// What /run-lite works with.
const (
	LiteAgent     = "run-lite"
	LiteWorkspace = "sandbox-lite" // all calls of a tenant share it
	LiteProvider  = "lite"         // the provider that its agent names; without one it is the default provider
)

const liteTokens = 600 // of one reply

// BuiltinAgents are the agents that need no file: "default" and that of /run-lite.
func BuiltinAgents() []Definition { return []Definition{BuiltinAgent(), liteAgent()} }

// liteAgent is the agent of /run-lite: the JSON protocol, three file tools, and the first thing that goes wrong ends it.
func liteAgent() Definition {
	d := Definition{
		Name:        LiteAgent,
		Description: "Answers /run-lite.",
		Instructions: "You complete the user's task. You have a folder of files, which keeps what earlier tasks wrote into it. " +
			"When you are done, answer with the result alone.",
		Planner: PlannerJSON, Model: LiteProvider, Tools: []string{"list_files", "read_file", "write_file"},
		MaxSteps: DefaultJSONSteps, MaxTokens: liteTokens, Temperature: new(0.0),
		OnToolError: OnErrorFail, OnInvalidOutput: OnErrorFail,
	}
	d.SetDefaults()
	return d
}
