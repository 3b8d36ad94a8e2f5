package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/webhook"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// webhookKeyCommand is `longshore webhook-key`. It needs the secret of the dispatchers in its environment, and no fleet.
func (p *Process) webhookKeyCommand() *cobra.Command {
	var tenant string
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "webhook-key", Short: "Print the key that a tenant checks its webhooks with",
		Long: "Print the key of a tenant in the form that libraries for Standard Webhooks use. It is derived from LONGSHORE_WEBHOOK_SECRET,\n" +
			"which must be the same as the dispatchers'.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings.Webhooks
			if err := settings.Load(&s, p.Environ()); err != nil {
				return err
			}
			switch {
			case s.WebhookSecret == "":
				return settings.Errorf("LONGSHORE_WEBHOOK_SECRET is missing: the secret of the dispatchers")
			case !strict.ValidToken(tenant):
				return render.Usagef("--tenant: must be 1 to 64 characters of A-Z a-z 0-9 _ -")
			}
			key := webhook.Key(s.WebhookSecret, tenant)
			if *asJSON {
				return render.WriteJSON(cmd, map[string]string{"key": key}, p.raw())
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), key); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", messages.DefaultTenant, "tenant of the key")
	asJSON = render.OutputFlag(cmd)
	return cmd
}
