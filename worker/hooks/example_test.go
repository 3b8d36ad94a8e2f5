package hooks_test

import (
	"fmt"
	"time"

	"github.com/longshore-run/longshore/worker/hooks"
)

// A server of hooks checks the signature before it reads the body, and refuses a call that was recorded and is sent again.
func ExampleVerify() {
	const secret = "a secret that both of them know"
	body := []byte(`{"point": "pre_task"}`)
	sent := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	signature := hooks.Sign(secret, sent, body) // by the worker, in the header of the call

	fmt.Println(hooks.Verify(secret, signature, body, sent.Add(time.Second), 5*time.Minute))
	fmt.Println(hooks.Verify(secret, signature, []byte(`{"point": "post_task"}`), sent.Add(time.Second), 5*time.Minute))
	fmt.Println(hooks.Verify(secret, signature, body, sent.Add(time.Hour), 5*time.Minute))
	// Output:
	// true
	// false
	// false
}
