package fleet

import (
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/service/webhooks"
	"github.com/longshore-run/longshore/dispatcher/webhook"
)

// webhookSender makes what delivers webhooks; nil when there is no secret to sign them with.
func webhookSender(s settings.Webhooks, version string) (sender webhooks.Sender, shut func(), err error) {
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
