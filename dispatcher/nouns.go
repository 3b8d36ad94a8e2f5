package dispatcher

// What a client asks for besides its own tasks is grouped by noun, each made from the client for nothing:
//
//	agents, err := client.Agents().List(ctx)
//	run, err := client.Schedules().Run(ctx, nightly)
type (
	// Agents are the definitions that tasks name.
	Agents struct{ client *Client }
	// Approvals are what people decide: calls that wait for an approval, questions that wait for an answer.
	Approvals struct{ client *Client }
	// Batches are tasks that are submitted, watched and cancelled together.
	Batches struct{ client *Client }
	// Data is all that is kept of a tenant, a conversation or a person.
	Data struct{ client *Client }
	// DeadLetters are tasks and webhooks that could not be worked or delivered.
	DeadLetters struct{ client *Client }
	// Files are the files of runs, as they were after each step.
	Files struct{ client *Client }
	// Runs are lists of runs, and what is known of one beyond its status and result.
	Runs struct{ client *Client }
	// Index is the run index of the dispatchers.
	Index struct{ client *Client }
	// Keys are the API keys of a tenant.
	Keys struct{ client *Client }
	// Memory is the long-term memory of a tenant.
	Memory struct{ client *Client }
	// Prompts are stored templates.
	Prompts struct{ client *Client }
	// Quotas are what operators grant tenants, agents and providers.
	Quotas struct{ client *Client }
	// Fleet is the workers, the lanes they take from, and what is paused.
	Fleet struct{ client *Client }
	// Schedules submit tasks at their times.
	Schedules struct{ client *Client }
	// Sessions are conversations over several runs.
	Sessions struct{ client *Client }
	// Workspaces are the named ones, whose files one run after the other has.
	Workspaces struct{ client *Client }
)

// Agents returns the requests about agents.
func (c *Client) Agents() Agents { return Agents{c} }

// Approvals returns the requests about what waits for people.
func (c *Client) Approvals() Approvals { return Approvals{c} }

// Batches returns the requests about batches.
func (c *Client) Batches() Batches { return Batches{c} }

// Data returns the requests about all that is kept.
func (c *Client) Data() Data { return Data{c} }

// DeadLetters returns the requests about dead letters.
func (c *Client) DeadLetters() DeadLetters { return DeadLetters{c} }

// Files returns the requests about the files of runs.
func (c *Client) Files() Files { return Files{c} }

// Runs returns the requests about runs that few programs make.
func (c *Client) Runs() Runs { return Runs{c} }

// Index returns the requests about the run index.
func (c *Client) Index() Index { return Index{c} }

// Keys returns the requests about API keys.
func (c *Client) Keys() Keys { return Keys{c} }

// Memory returns the requests about long-term memory.
func (c *Client) Memory() Memory { return Memory{c} }

// Prompts returns the requests about prompts.
func (c *Client) Prompts() Prompts { return Prompts{c} }

// Quotas returns the requests about quotas.
func (c *Client) Quotas() Quotas { return Quotas{c} }

// Fleet returns the requests about workers, lanes and pauses.
func (c *Client) Fleet() Fleet { return Fleet{c} }

// Schedules returns the requests about schedules.
func (c *Client) Schedules() Schedules { return Schedules{c} }

// Sessions returns the requests about sessions.
func (c *Client) Sessions() Sessions { return Sessions{c} }

// Workspaces returns the requests about named workspaces.
func (c *Client) Workspaces() Workspaces { return Workspaces{c} }
