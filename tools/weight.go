package tools

// Weigher is a Tool whose calls may hold more memory than DefaultWeight while they run, such as one that reads an answer as a whole
// before it cuts it. A worker makes as many calls at once as there is memory for.
type Weigher interface {
	// Weight is in bytes. It is asked right before the call is made, may look at the files of its workspace, and returns at once.
	Weight(c *Call) int64
}

// DefaultWeight is what a call of another tool holds at most, in bytes: a result as large as may be, and copies of it while it is checked
// and cut.
const DefaultWeight = 3 * maxOutput

// Weight is how many bytes of memory a call of a tool may hold while it runs. Of the call it needs the arguments, which passed Check, and the
// workspace.
func (s *Set) Weight(name string, c *Call) int64 {
	if m := s.members[name]; m != nil {
		if w, ok := m.tool.(Weigher); ok {
			return max(DefaultWeight, w.Weight(c))
		}
	}
	return DefaultWeight
}
