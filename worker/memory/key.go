package memory

import "github.com/longshore-run/longshore/messages"

// All keys of a run have its tag in braces, so that a cluster keeps them in one slot. They must only be made of a Ref
// that passed Check.

func (s *ShortTerm) key(run messages.Ref, what string) string {
	return s.config.Prefix + ":{" + run.Tenant + "." + run.Run + "}:" + what
}

func (s *ShortTerm) stateKey(run messages.Ref) string { return s.key(run, "state") }

// indexKey is the set of the names of the run's streams.
func (s *ShortTerm) indexKey(run messages.Ref) string { return s.key(run, "streams") }

func (s *ShortTerm) streamKey(run messages.Ref, stream string) string {
	return s.key(run, "stream:"+stream)
}
