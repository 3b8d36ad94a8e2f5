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
)

const (
	completesWithin = time.Second // a shell waits for it
	mostCompleted   = 100         // names that are offered
	completedText   = 50          // columns of what is said of a name
)

// Offer is a name that a shell may offer, and a few words about it.
type Offer struct{ Name, About string }

// Offers returns what a fleet has of a kind in a tenant. It may return only names with a prefix.
type Offers func(ctx context.Context, client *dispatcher.Client, tenant, prefix string) ([]Offer, error)

// Completes asks a dispatcher for what a shell may offer for an argument or a flag. When there is no answer within a second, for
// whatever reason, nothing is offered and nothing is said. Names with characters that a shell or a terminal could take for
// something else are left out.
func (c *Caller) Completes(offers Offers) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completesWithin)
		defer cancel()
		tenant := messages.DefaultTenant
		if f := cmd.Flag("tenant"); f != nil {
			tenant = f.Value.String()
		}
		var found []Offer
		_ = c.With(ctx, func(client *dispatcher.Client) (err error) { // what cannot be asked is not offered
			found, err = offers(ctx, client, tenant, prefix)
			return err
		})
		var out []cobra.Completion
		for _, o := range found {
			if len(out) < mostCompleted && o.Name != "" && strings.HasPrefix(o.Name, prefix) && !strings.ContainsFunc(o.Name, unfit) {
				out = append(out, cobra.CompletionWithDesc(o.Name, render.Truncate(render.Visible(o.About), completedText)))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// unfit reports whether a character needs quotes in some shell.
func unfit(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r)
	return !plain
}

// Runs offers the newest runs.
func Runs(ctx context.Context, client *dispatcher.Client, tenant, prefix string) ([]Offer, error) {
	list, err := client.Runs().List(ctx, dispatcher.RunFilter{Tenant: tenant, Prefix: prefix, Limit: mostCompleted})
	if err != nil {
		return nil, err
	}
	out := make([]Offer, len(list.Runs))
	for i, r := range list.Runs {
		out[i] = Offer{r.ID, cmp.Or(string(r.Status), "run") + ": " + r.Input}
	}
	return out, nil
}
