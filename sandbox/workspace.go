// Package sandbox confines what tools do.
package sandbox

// Workspace is a run's folder; nothing outside can be named through it. Safe for concurrent use.
type Workspace struct{}
