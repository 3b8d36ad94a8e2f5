//go:build !race

package embedded

import "time"

const defaultSyncInterval = 100 * time.Millisecond // measured: costs no throughput, and bounds what a power loss takes
