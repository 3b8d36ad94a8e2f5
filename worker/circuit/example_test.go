package circuit_test

import (
	"fmt"
	"time"

	"github.com/longshore-run/longshore/worker/circuit"
)

// Two failures in a row open it. After its time one operation probes the server, and its success closes the circuit.
func Example() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := circuit.New(circuit.Config{Failures: 2, First: 10 * time.Second, Now: func() time.Time { return now }})
	for range 2 {
		pass, _ := c.Enter()
		fmt.Println("failed, opened:", c.Fail(pass, circuit.Failure{}))
	}
	_, ok := c.Enter()
	fmt.Println("may call:", ok, "wait:", c.Wait())

	now = now.Add(10 * time.Second)
	probe, ok := c.Enter()
	_, second := c.Enter()
	fmt.Println("may probe:", ok, "a second one:", second)
	fmt.Println("succeeded, closed:", c.Succeed(probe))
	// Output:
	// failed, opened: false
	// failed, opened: true
	// may call: false wait: 10s
	// may probe: true a second one: false
	// succeeded, closed: true
}
