package fleet

import (
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/hooks"
	"github.com/longshore-run/longshore/worker/hooks/command"
	"github.com/longshore-run/longshore/worker/runner"
)

// agentHooks makes the hooks of agents, as far as the settings and the listed commands allow them.
func agentHooks(s settings.Hooks, commands *command.Hooks, version string) (hook func(messages.Hook) (runner.HookFunc, error), shut func(), err error) {
	c, err := hooks.New(hooks.Config{
		Hosts: s.HookHosts, Secret: s.HookSecret, AllowPrivate: s.HookPrivate, UserAgent: "longshore/" + version,
	})
	if err != nil {
		return nil, nil, settings.Errorf("LONGSHORE_HOOK_HOSTS: %v", err)
	}
	return func(h messages.Hook) (runner.HookFunc, error) {
		if h.Command != "" {
			return commands.Hook(h)
		}
		return c.Hook(h)
	}, c.Close, nil
}
