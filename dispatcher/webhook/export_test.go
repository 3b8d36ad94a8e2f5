package webhook

import "net/netip"

// Guard is what decides on a connection of a sender.
func Guard(s *Sender, endpoint string, at netip.AddrPort) error { return s.guard(endpoint, at) }
