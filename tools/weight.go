package tools

// Weigher is a Tool whose calls may hold more memory than DefaultWeight while they run, such as one that reads an answer as a whole
// before it cuts it. A worker makes as many of its calls at once as there is memory for.
type Weigher interface {
	// Weight is in bytes, and always the same.
	Weight() int64
}

// DefaultWeight is what a call of another tool holds at most, in bytes: a result as large as may be, and copies of it while it is checked
// and cut.
const DefaultWeight = 3 * maxOutput

// Weight is how many bytes of memory a call of a tool may hold while it runs.
func (s *Set) Weight(name string) int64 {
	if m := s.members[name]; m != nil {
		if w, ok := m.tool.(Weigher); ok {
			return max(DefaultWeight, w.Weight())
		}
	}
	return DefaultWeight
}
