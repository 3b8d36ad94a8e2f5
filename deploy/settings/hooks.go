package settings

// Hooks says which HTTP hooks of agents a worker makes.
type Hooks struct {
	HookHosts   []string `env:"LONGSHORE_HOOK_HOSTS"   help:"hosts that hooks of agents may call, comma separated: hooks.example.com, 10.1.2.3:8443 (default: none)"`
	HookSecret  string   `env:"LONGSHORE_HOOK_SECRET"  help:"signs the requests of hooks; at least 16 characters" secret:"true"`
	HookPrivate bool     `env:"LONGSHORE_HOOK_PRIVATE" envDefault:"false" help:"whether listed names may resolve to private addresses; listed addresses always may"`
}

// minHookSecret is the minimum length of a secret in bytes.
const minHookSecret = 16

// Check returns an *Error.
func (s *Hooks) Check() error {
	if s.HookSecret != "" && len(s.HookSecret) < minHookSecret {
		return Errorf("LONGSHORE_HOOK_SECRET: must have at least %d characters", minHookSecret)
	}
	return nil
}
