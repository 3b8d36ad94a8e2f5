package memorylimit_test

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/worker/memorylimit"
)

// A run says what it will hold before it does, and afterwards what is left of it.
func Example() {
	ctx := context.Background()
	budget := memorylimit.New(256 << 20)
	run := budget.Open("run-1", 1<<20) // its task has come
	defer run.Close()

	_ = run.Hold(ctx, 40<<20) // before a call that may return much
	fmt.Println("during the call:", budget.Stats().Used>>20, "MiB")
	_ = run.Hold(ctx, 3<<20)
	fmt.Println("after it:", budget.Stats().Used>>20, "MiB")

	fmt.Println(run.Hold(ctx, 65<<20))
	// Output:
	// during the call: 40 MiB
	// after it: 3 MiB
	// the run needs 68157440 bytes of memory, more than the share of 67108864 bytes that a run may have
}
