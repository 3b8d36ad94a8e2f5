package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// completeNoFiles keeps file names from being offered for the arguments of commands that take none.
func completeNoFiles(cmd *cobra.Command) {
	_, args, _ := strings.Cut(cmd.Use, " ")
	takesFile := strings.Contains(args, "FILE") || strings.Contains(args, "FOLDER") || strings.Contains(args, ".yaml") || strings.Contains(args, "DIR")
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !takesFile {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// completed are the commands whose first argument names something that a fleet has, by their paths.
func completed() map[string]conn.Offers {
	out := map[string]conn.Offers{}
	for _, of := range []struct {
		offers   conn.Offers
		commands []string
	}{
		{conn.Runs, []string{"answer", "approve", "cancel", "deny", "feedback", "files diff", "files get", "files ls", "fork", "logs", "result", "retry", "status", "steer", "watch", "why"}},
		{batches, []string{"batch cancel", "batch results", "batch retry", "batch status"}},
		{agents, []string{"agents delete", "agents diff", "agents get", "agents history"}},
		{prompts, []string{"prompts delete", "prompts diff", "prompts get", "prompts history", "prompts put", "prompts render"}},
		{schedules, []string{"schedules delete", "schedules pause", "schedules resume", "schedules run", "schedules show"}},
		{sessions, []string{"sessions delete", "sessions show"}},
		{workers, []string{"drain"}},
	} {
		for _, path := range of.commands {
			out[path] = of.offers
		}
	}
	return out
}

// completedFlags are the flags, of any command, whose value names something that a fleet has.
func completedFlags() map[string]conn.Offers {
	return map[string]conn.Offers{"agent": agents, "parent": conn.Runs, "session": sessions, "tenant": tenants}
}

// complete lets shells offer what a fleet has for the arguments and flags of commands.
func complete(c *conn.Caller, above string, commands []*cobra.Command) {
	for _, cmd := range commands {
		path := strings.TrimPrefix(above+" "+cmd.Name(), " ")
		if offers, ok := completed()[path]; ok {
			first := c.Completes(offers)
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return first(cmd, args, prefix)
			}
		}
		for flag, offers := range completedFlags() {
			if cmd.Flag(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, c.Completes(offers)) // the flag is there, and has none
			}
		}
		if cmd.Flag("priority") != nil {
			lanes := []string{string(messages.PriorityHigh), string(messages.PriorityNormal), string(messages.PriorityLow)}
			_ = cmd.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions(lanes, cobra.ShellCompDirectiveNoFileComp))
		}
		complete(c, path, cmd.Commands())
	}
}

func batches(ctx context.Context, client *dispatcher.Client, tenant, _ string) ([]conn.Offer, error) {
	const most = 100
	list, err := client.Batches().List(ctx, tenant, most)
	if err != nil {
		return nil, err
	}
	return offered(list.Batches, func(b *messages.Batch) conn.Offer { return conn.Offer{Name: b.ID, About: string(b.Status)} }), nil
}

func agents(ctx context.Context, client *dispatcher.Client, _, _ string) ([]conn.Offer, error) {
	list, err := client.Agents().List(ctx)
	return offered(list, func(d *messages.Definition) conn.Offer { return conn.Offer{Name: d.Name, About: d.Description} }), err
}

func prompts(ctx context.Context, client *dispatcher.Client, _, _ string) ([]conn.Offer, error) {
	list, err := client.Prompts().List(ctx, control.PromptFilter{})
	return offered(list, func(p *messages.Prompt) conn.Offer { return conn.Offer{Name: p.ID, About: p.Name} }), err
}

func schedules(ctx context.Context, client *dispatcher.Client, tenant, _ string) ([]conn.Offer, error) {
	list, err := client.Schedules().List(ctx, tenant)
	return offered(list, func(s *control.ScheduleSummary) conn.Offer { return conn.Offer{Name: s.Name, About: s.Agent} }), err
}

func sessions(ctx context.Context, client *dispatcher.Client, tenant, _ string) ([]conn.Offer, error) {
	list, err := client.Sessions().List(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return offered(list.Sessions, func(s *control.SessionStatus) conn.Offer { return conn.Offer{Name: s.Name} }), nil
}

func workers(ctx context.Context, client *dispatcher.Client, _, _ string) ([]conn.Offer, error) {
	list, err := client.Fleet().Workers(ctx)
	return offered(list, func(w *messages.WorkerStatus) conn.Offer { return conn.Offer{Name: w.Name, About: w.Version} }), err
}

// tenants are those that have a lane.
func tenants(ctx context.Context, client *dispatcher.Client, _, _ string) ([]conn.Offer, error) {
	list, err := client.Fleet().Lanes(ctx, control.LanesRequest{})
	if err != nil {
		return nil, err
	}
	var out []conn.Offer
	known := map[string]bool{}
	for i := range list.Lanes {
		if name := list.Lanes[i].Tenant; !known[name] {
			known[name] = true
			out = append(out, conn.Offer{Name: name})
		}
	}
	return out, nil
}

func offered[T any](list []T, offer func(*T) conn.Offer) []conn.Offer {
	out := make([]conn.Offer, len(list))
	for i := range list {
		out[i] = offer(&list[i])
	}
	return out
}
