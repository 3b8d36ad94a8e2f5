package cli

import "github.com/spf13/cobra"

// groups are the headings of the help, in their order, and the commands below each.
func groups() []group {
	return []group{
		{"fleet", "Start a fleet, or a part of one:", []string{"run", "dev", "init", "dispatcher", "worker"}},
		{"runs", "Submit tasks and follow runs:", []string{"submit", "batch", "retry", "watch", "status", "why", "logs", "result", "files", "list", "steer", "cancel"}},
		{"waiting", "Decide for runs that wait:", []string{"inbox", "approvals", "approve", "deny", "answer"}},
		{"look", "Look back and compare:", []string{"replay", "policy", "fork", "feedback", "eval", "dead", "stats", "audit"}},
		{"operate", "Operate a fleet:", []string{"top", "doctor", "lanes", "quotas", "pause", "resume", "workers", "drain", "keys", "index", "tools", "health", "version"}},
		{"keep", "What a fleet keeps:", []string{"agents", "prompts", "sessions", "workspaces", "schedules", "memory", "prices", "webhook-key"}},
	}
}

type group struct {
	id, title string
	commands  []string
}

// Group puts the commands of root below headings in its help. Those that it does not know stay below
// "Additional Commands". Call it before Usage.
func Group(root *cobra.Command) {
	of := map[string]string{}
	for _, g := range groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			of[name] = g.id
		}
	}
	for _, cmd := range root.Commands() {
		cmd.GroupID = of[cmd.Name()]
	}
}
