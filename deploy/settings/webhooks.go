package settings

// Webhooks says how dispatchers deliver webhooks.
type Webhooks struct {
	WebhookSecret string   `env:"LONGSHORE_WEBHOOK_SECRET"     help:"webhooks are signed with keys derived from it, one per tenant; at least 24 characters (default: no webhooks)" secret:"true"`
	WebhookOld    string   `env:"LONGSHORE_WEBHOOK_SECRET_OLD" help:"the previous secret; webhooks are signed with both while receivers change" secret:"true"`
	WebhookHosts  []string `env:"LONGSHORE_WEBHOOK_HOSTS"      help:"hosts that webhooks may also call over plain HTTP and at private addresses, comma separated"`
}

// minWebhookSecret is the minimum length of a secret in bytes.
const minWebhookSecret = 24

// Check returns an *Error.
func (s *Webhooks) Check() error {
	switch {
	case s.WebhookSecret != "" && len(s.WebhookSecret) < minWebhookSecret:
		return Errorf("LONGSHORE_WEBHOOK_SECRET: must have at least %d characters", minWebhookSecret)
	case s.WebhookOld != "" && len(s.WebhookOld) < minWebhookSecret:
		return Errorf("LONGSHORE_WEBHOOK_SECRET_OLD: must have at least %d characters", minWebhookSecret)
	case s.WebhookOld != "" && s.WebhookSecret == "":
		return Errorf("LONGSHORE_WEBHOOK_SECRET is missing: LONGSHORE_WEBHOOK_SECRET_OLD is only the one before it")
	}
	return nil
}

// Secrets are those that sign, the newest first.
func (s *Webhooks) Secrets() []string {
	var out []string
	for _, secret := range []string{s.WebhookSecret, s.WebhookOld} {
		if secret != "" {
			out = append(out, secret)
		}
	}
	return out
}
