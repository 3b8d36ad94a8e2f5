package agent

import "github.com/longshore-run/longshore/messages"

// AskHooks calls hooks before the planned action. The performer puts it in the place of a planner's action, for hooks
// are not part of the state; no planner returns it.
type AskHooks struct{ Calls []messages.HookCall }

func (*AskHooks) action() {}
