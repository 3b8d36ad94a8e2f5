package fleet

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/dispatcher/webhook"
	"github.com/longshore-run/longshore/messages"
)

// webhooks makes what delivers webhooks; nil when there is no secret to sign them with.
func webhooks(s settings.Webhooks, version string) (sender service.Sender, shut func(), err error) {
	secrets := s.Secrets()
	if len(secrets) == 0 {
		return nil, func() {}, nil
	}
	out, err := webhook.New(webhook.Config{Secrets: secrets, Hosts: s.WebhookHosts, UserAgent: "longshore/" + version})
	if err != nil {
		return nil, nil, settings.Errorf("LONGSHORE_WEBHOOK_HOSTS: %v", err)
	}
	return out, out.Close, nil
}

// WebhookKeyCommand prints the key that a tenant checks its webhooks with. It asks nobody: it needs the secret in its
// environment. With raw, JSON is written as it is, for an output that is no terminal.
func WebhookKeyCommand(environ func() []string, raw bool) *cobra.Command {
	var tenant string
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "webhook-key", Short: "Print the key that a tenant checks its webhooks with",
		Long: "Print the key of a tenant, as libraries for Standard Webhooks take it. It is derived from LONGSHORE_WEBHOOK_SECRET,\n" +
			"which must be the one of the dispatchers.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings.Webhooks
			if err := settings.Load(&s, environ()); err != nil {
				return err
			}
			switch {
			case s.WebhookSecret == "":
				return settings.Errorf("LONGSHORE_WEBHOOK_SECRET is missing: the secret of the dispatchers")
			case !messages.ValidToken(tenant):
				return cli.Usagef("--tenant: must be 1 to 64 characters of A-Z a-z 0-9 _ -")
			}
			key := webhook.Key(s.WebhookSecret, tenant)
			if *asJSON {
				return cli.WriteJSON(cmd, map[string]string{"key": key}, raw)
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), key); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", messages.DefaultTenant, "whose key")
	asJSON = cli.OutputFlag(cmd)
	return cmd
}
