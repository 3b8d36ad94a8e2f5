package runner_test

import (
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeds is how many seeds the simulation plays: LONGSHORE_SIM_SEEDS, else what fits an everyday test run.
func seeds(t *testing.T) uint64 {
	t.Helper()
	s := os.Getenv("LONGSHORE_SIM_SEEDS")
	if s == "" {
		return 1000
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("LONGSHORE_SIM_SEEDS: %v", err)
	}
	return n
}
