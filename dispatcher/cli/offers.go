package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/queue"
)

func batches(ctx context.Context, client *dispatcher.Client, asked *conn.Asked) ([]conn.Offer, error) {
	const most = 100
	list, err := client.Batches().List(ctx, asked.Tenant(), most)
	if err != nil {
		return nil, err
	}
	return conn.Offered(list.Batches, func(b *messages.Batch) conn.Offer { return conn.Offer{Name: b.ID, About: string(b.Status)} }), nil
}

func prompts(ctx context.Context, client *dispatcher.Client, _ *conn.Asked) ([]conn.Offer, error) {
	list, err := client.Prompts().List(ctx, control.PromptFilter{})
	return conn.Offered(list, func(p *messages.Prompt) conn.Offer { return conn.Offer{Name: p.ID, About: p.Name} }), err
}

func schedules(ctx context.Context, client *dispatcher.Client, asked *conn.Asked) ([]conn.Offer, error) {
	list, err := client.Schedules().List(ctx, asked.Tenant())
	return conn.Offered(list, func(s *control.ScheduleSummary) conn.Offer { return conn.Offer{Name: s.Name, About: s.Agent} }), err
}

func workspaces(ctx context.Context, client *dispatcher.Client, asked *conn.Asked) ([]conn.Offer, error) {
	list, err := client.Workspaces().List(ctx, asked.Tenant())
	if err != nil {
		return nil, err
	}
	return conn.Offered(list.Workspaces, func(s *control.WorkspaceStatus) conn.Offer { return conn.Offer{Name: s.Name} }), nil
}

func sessions(ctx context.Context, client *dispatcher.Client, asked *conn.Asked) ([]conn.Offer, error) {
	list, err := client.Sessions().List(ctx, asked.Tenant())
	if err != nil {
		return nil, err
	}
	return conn.Offered(list.Sessions, func(s *control.SessionStatus) conn.Offer { return conn.Offer{Name: s.Name} }), nil
}

// collections offers the collections of a tenant.
func collections(ctx context.Context, client *dispatcher.Client, asked *conn.Asked) ([]conn.Offer, error) {
	all, err := client.Memory().Collections(ctx, asked.Tenant())
	if err != nil {
		return nil, err
	}
	return conn.Offered(all.Collections, func(c *memory.Collection) conn.Offer {
		return conn.Offer{Name: c.Name, About: strconv.FormatInt(c.Items, 10) + " items"}
	}), nil
}

func workers(ctx context.Context, client *dispatcher.Client, _ *conn.Asked) ([]conn.Offer, error) {
	list, err := client.Fleet().Workers(ctx)
	return conn.Offered(list, func(w *messages.WorkerStatus) conn.Offer { return conn.Offer{Name: w.Name, About: w.Version} }), err
}

// tenants offers those that have a lane.
func tenants(ctx context.Context, client *dispatcher.Client, _ *conn.Asked) ([]conn.Offer, error) {
	list, err := client.Fleet().Lanes(ctx, control.LanesRequest{})
	if err != nil {
		return nil, err
	}
	return distinct(conn.Offered(list.Lanes, func(l *control.LaneStatus) conn.Offer { return conn.Offer{Name: l.Tenant} })), nil
}

// letters offers the dead letters that are not among the arguments.
func letters(ctx context.Context, client *dispatcher.Client, asked *conn.Asked) ([]conn.Offer, error) {
	var req control.DeadListRequest
	if f := asked.Cmd.Flag("unaddressed"); f != nil && f.Changed {
		req.Unaddressed = true
	} else {
		req.Tenant = asked.Tenant()
	}
	list, err := client.DeadLetters().List(ctx, req)
	if err != nil {
		return nil, err
	}
	all := conn.Offered(list.Letters, func(l *control.DeadLetter) conn.Offer {
		return conn.Offer{Name: strconv.FormatUint(l.Seq, 10), About: string(l.Error.Code) + ": " + l.Error.Message}
	})
	return slices.DeleteFunc(all, func(o conn.Offer) bool { return slices.Contains(asked.Args, o.Name) }), nil
}

func apiKeys(ctx context.Context, client *dispatcher.Client, _ *conn.Asked) ([]conn.Offer, error) {
	list, err := client.Keys().List(ctx, "")
	if err != nil {
		return nil, err
	}
	return conn.Offered(list.Keys, func(k *control.APIKey) conn.Offer {
		return conn.Offer{Name: k.ID, About: strings.TrimSpace(k.Tenant + " " + k.Name)}
	}), nil
}

// kinds offers what may have a quota or be paused.
func kinds(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all := []queue.QuotaKind{queue.QuotaAgent, queue.QuotaProvider, queue.QuotaTenant}
	offers := conn.Offered(all, func(k *queue.QuotaKind) conn.Offer { return conn.Offer{Name: string(*k)} })
	return conn.Completions(offers, prefix), cobra.ShellCompDirectiveNoFileComp
}

// granted offers those of the kind in the first argument that have a quota.
func granted(ctx context.Context, client *dispatcher.Client, asked *conn.Asked) ([]conn.Offer, error) {
	list, err := client.Quotas().List(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(q control.QuotaState) bool { return string(q.Kind) != asked.Args[0] })
	return conn.Offered(list, func(q *control.QuotaState) conn.Offer { return conn.Offer{Name: q.Name} }), nil
}

// paused offers those of the kind in the first argument that are paused.
func paused(ctx context.Context, client *dispatcher.Client, asked *conn.Asked) ([]conn.Offer, error) {
	list, err := client.Fleet().Pauses(ctx)
	if err != nil {
		return nil, err
	}
	list.Pauses = slices.DeleteFunc(list.Pauses, func(p control.PausedThing) bool { return string(p.Kind) != asked.Args[0] })
	return conn.Offered(list.Pauses, func(p *control.PausedThing) conn.Offer { return conn.Offer{Name: p.Name, About: p.Reason} }), nil
}

// limitable offers what the fleet knows of the kind in the first argument, with a quota or without.
func limitable(ctx context.Context, client *dispatcher.Client, asked *conn.Asked) ([]conn.Offer, error) {
	known := conn.Offers(nil)
	switch queue.QuotaKind(asked.Args[0]) {
	case queue.QuotaAgent:
		known = conn.Agents
	case queue.QuotaTenant:
		known = tenants
	case queue.QuotaProvider: // only workers know those without a quota
	}
	all, err := granted(ctx, client, asked)
	if err != nil || known == nil {
		return all, err
	}
	more, err := known(ctx, client, asked)
	return distinct(append(more, all...)), err
}

// distinct returns the first offer of each name.
func distinct(offers []conn.Offer) []conn.Offer {
	known := map[string]bool{}
	return slices.DeleteFunc(offers, func(o conn.Offer) bool {
		seen := known[o.Name]
		known[o.Name] = true
		return seen
	})
}
