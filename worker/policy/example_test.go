package policy_test

import (
	"fmt"
	"os"

	"github.com/longshore-run/longshore/worker/policy"
)

// A secret that is cut in two by the writes of a stream is still found.
func ExampleRedactor() {
	r := policy.NewRedactor("hunter2-hunter2")
	fmt.Println(r.String("the key is hunter2-hunter2, keep it"))

	w := r.Writer(os.Stdout)
	fmt.Fprint(w, "Authorization: hunter2-")
	fmt.Fprint(w, "hunter2\n")
	if err := w.Flush(); err != nil {
		panic(err)
	}
	// Output:
	// the key is [redacted], keep it
	// Authorization: [redacted]
}
