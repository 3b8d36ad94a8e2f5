package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/messages"
)

// completeNoFiles keeps file names from being offered for the arguments of commands that take none.
func completeNoFiles(cmd *cobra.Command) {
	_, args, _ := strings.Cut(cmd.Use, " ")
	takesFile := strings.Contains(args, "FILE") || strings.Contains(args, "FOLDER") || strings.Contains(args, ".yaml") || strings.Contains(args, "DIR")
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !takesFile {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// Complete lets shells offer names that a fleet has for the arguments and flags of commands. Those of [Commands] have it. A command
// that completes an argument or a flag itself keeps that.
func Complete(connect conn.Connect, commands ...*cobra.Command) {
	complete(&conn.Caller{Connect: connect}, "", commands)
}

// arguments are what shells offer for the arguments of a command, by position.
type arguments struct {
	at   []cobra.CompletionFunc
	more bool // the last one may be repeated
}

func (a arguments) complete(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	at := len(args)
	if a.more {
		at = min(at, len(a.at)-1)
	}
	if at >= len(a.at) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.at[at](cmd, args, prefix)
}

// completed are the commands whose arguments name something that a fleet has, by their paths.
func completed(c *conn.Caller) map[string]arguments {
	out := map[string]arguments{}
	for _, of := range []struct {
		offers   conn.Offers
		commands []string
	}{
		{conn.Runs, []string{"answer", "approve", "cancel", "deny", "feedback", "files diff", "files get", "files ls", "fork", "logs", "result", "retry", "status", "steer", "watch", "why"}},
		{batches, []string{"batch cancel", "batch results", "batch retry", "batch status"}},
		{conn.Agents, []string{"agents delete", "agents diff", "agents get", "agents history"}},
		{prompts, []string{"prompts delete", "prompts diff", "prompts get", "prompts history", "prompts put", "prompts render"}},
		{schedules, []string{"schedules delete", "schedules pause", "schedules resume", "schedules run", "schedules show"}},
		{sessions, []string{"sessions delete", "sessions show"}},
		{workspaces, []string{"workspaces rm", "workspaces show"}},
		{collections, []string{"memory ls", "memory put", "memory rm", "memory search", "memory show"}},
		{workers, []string{"drain"}},
		{letters, []string{"dead show"}},
		{apiKeys, []string{"keys api revoke"}},
	} {
		for _, path := range of.commands {
			out[path] = arguments{at: []cobra.CompletionFunc{c.Completes(of.offers)}}
		}
	}
	for _, path := range []string{"dead purge", "dead redrive"} {
		out[path] = arguments{at: []cobra.CompletionFunc{c.Completes(letters)}, more: true}
	}
	for path, names := range map[string]conn.Offers{
		"pause": limitable, "resume": paused, "quotas delete": granted, "quotas set": limitable, "quotas show": limitable,
	} {
		out[path] = arguments{at: []cobra.CompletionFunc{kinds, c.Completes(names)}}
	}
	return out
}

// completedFlags are the flags, of any command, whose value names something that a fleet has.
func completedFlags() map[string]conn.Offers {
	return map[string]conn.Offers{"agent": conn.Agents, "parent": conn.Runs, "session": sessions, "tenant": tenants}
}

// complete lets shells offer what a fleet has for the arguments and flags of commands.
func complete(c *conn.Caller, above string, commands []*cobra.Command) {
	for _, cmd := range commands {
		path := strings.TrimPrefix(above+" "+cmd.Name(), " ")
		if args, ok := completed(c)[path]; ok {
			cmd.ValidArgsFunction = args.complete
		}
		for flag, offers := range completedFlags() {
			if cmd.Flag(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, c.Completes(offers)) // the flag is there, and what the command has stays
			}
		}
		if cmd.Flag("priority") != nil {
			lanes := []string{string(messages.PriorityHigh), string(messages.PriorityNormal), string(messages.PriorityLow)}
			_ = cmd.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions(lanes, cobra.ShellCompDirectiveNoFileComp))
		}
		complete(c, path, cmd.Commands())
	}
}
