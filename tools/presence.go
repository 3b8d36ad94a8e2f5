package tools

// Presence is a Tool that is not always there, such as one of a server that may be away. A worker is listed with it, and begins
// runs that need it, only while it is. Calls of runs that have begun reach it anyway, and it answers them.
type Presence interface {
	// Present returns at once.
	Present() bool
}

func (m *member) present() bool {
	p, ok := m.tool.(Presence)
	return !ok || p.Present()
}
