package memory

import "github.com/longshore-run/longshore/messages"

// stateKey has the run's tag in braces, which decides on the slot in a cluster. It must only be made of a Ref that passed Check.
func (s *ShortTerm) stateKey(run messages.Ref) string {
	return StateKey(s.config.Prefix, run)
}
