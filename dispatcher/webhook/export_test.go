package webhook

import "net/netip"

// Guard is what decides on a connection of a sender.
func Guard(s *Sender, endpoint string, ip netip.Addr) error { return s.guard(endpoint, ip) }
