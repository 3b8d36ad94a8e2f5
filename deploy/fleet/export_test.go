package fleet

// GCPercent is the GOGC with which the heap grows to the goal.
func GCPercent(goal, live, roots uint64) int { return gcPercent(goal, heap{live: live, roots: roots}) }

// Idle reports whether a heap is collected now, after so much was allocated since the last look.
func Idle(goal, live, used, allocated uint64) bool {
	return heap{live: live, used: used, allocated: allocated}.idle(heap{}, goal)
}
