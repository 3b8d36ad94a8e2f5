package fleet

// GCPercent is the GOGC with which the heap grows to the goal.
func GCPercent(goal, live, roots uint64) int { return gcPercent(goal, heap{live: live, roots: roots}) }
