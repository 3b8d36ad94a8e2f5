//go:build !race

package embedded

import "time"

// It bounds what a loss of power takes, and costs no throughput. Each stream has a timer of its own: ten times as often, syncing is most of
// what an idle process does.
const defaultSyncInterval = time.Second
