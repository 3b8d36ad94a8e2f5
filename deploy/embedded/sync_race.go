//go:build race

package embedded

import "time"

// The server sets the first timer of a store without the store's lock (setSyncTimer in its filestore.go). If the timer
// fires before the maker of the store takes the lock for something else, as on a loaded machine, the race detector fails
// whatever test is running. It does no harm there, and no test loses power: let the timer fire after the tests.
const defaultSyncInterval = time.Minute
