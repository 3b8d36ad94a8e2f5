package conn

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

const (
	completesWithin = time.Second // a shell waits for it
	mostCompleted   = 100         // names that are offered
	completedText   = 50          // columns of the text about a name
)

// Offer is a name that a shell may offer, and a few words about it.
type Offer struct{ Name, About string }

// Asked is what a shell wants names for: an argument or a flag of a command.
type Asked struct {
	Cmd    *cobra.Command // its flags say what was typed of them
	Args   []string       // before the one that is wanted
	Prefix string         // what was typed of the name
}

// Tenant returns what --tenant says.
func (a *Asked) Tenant() string {
	if f := a.Cmd.Flag("tenant"); f != nil {
		return f.Value.String()
	}
	return messages.DefaultTenant
}

// Offers returns what a fleet has of a kind. It may leave out names without the prefix.
type Offers func(ctx context.Context, client *dispatcher.Client, asked *Asked) ([]Offer, error)

// Completes asks a dispatcher for what a shell may offer for an argument or a flag. When there is no answer within a second, for
// whatever reason, nothing is offered and nothing is printed.
func (c *Caller) Completes(offers Offers) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completesWithin)
		defer cancel()
		var found []Offer
		_ = c.With(ctx, func(client *dispatcher.Client) (err error) { // what cannot be asked is not offered
			found, err = offers(ctx, client, &Asked{Cmd: cmd, Args: args, Prefix: prefix})
			return err
		})
		return Completions(found, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// Completions returns the offers with a prefix, up to a bound. Names with characters that a shell or a terminal could take for
// something else are left out.
func Completions(offers []Offer, prefix string) (out []cobra.Completion) {
	for _, o := range offers {
		if len(out) < mostCompleted && o.Name != "" && strings.HasPrefix(o.Name, prefix) && !strings.ContainsFunc(o.Name, unfit) {
			out = append(out, cobra.CompletionWithDesc(o.Name, render.Truncate(render.Visible(o.About), completedText)))
		}
	}
	return out
}

// unfit reports whether a character needs quotes in some shell.
func unfit(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r)
	return !plain
}

// Runs offers the newest runs.
func Runs(ctx context.Context, client *dispatcher.Client, asked *Asked) ([]Offer, error) {
	list, err := client.Runs().List(ctx, dispatcher.RunFilter{Tenant: asked.Tenant(), Prefix: asked.Prefix, Limit: mostCompleted})
	if err != nil {
		return nil, err
	}
	return Offered(list.Runs, func(r **control.RunSummary) Offer {
		return Offer{(*r).ID, cmp.Or(string((*r).Status), "run") + ": " + (*r).Input}
	}), nil
}

// Agents offers the agents by name.
func Agents(ctx context.Context, client *dispatcher.Client, _ *Asked) ([]Offer, error) {
	list, err := client.Agents().List(ctx)
	return Offered(list, AgentOffer), err
}

// AgentOffer offers one agent.
func AgentOffer(d *messages.Definition) Offer { return Offer{d.Name, d.Description} }

// Offered returns an offer for each element of a list.
func Offered[T any](list []T, offer func(*T) Offer) []Offer {
	out := make([]Offer, len(list))
	for i := range list {
		out[i] = offer(&list[i])
	}
	return out
}
