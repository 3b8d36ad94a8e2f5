package strict_test

import (
	"fmt"

	"github.com/longshore-run/longshore/messages/strict"
)

func ExampleDecode() {
	var limits struct {
		MaxSteps int `json:"maxSteps,omitempty"`
	}
	for _, body := range []string{`{"maxSteps": 3}`, `{"maxSteps": "3"}`, `{"maxsteps": 3}`, `{"maxSteps": 3, "maxSteps": 4}`, `{"maxSteps": 3`} {
		if err := strict.Decode([]byte(body), &limits); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(limits.MaxSteps)
	}
	// Output:
	// 3
	// maxSteps: must be an integer, not a string
	// maxsteps: unknown field: did you mean maxSteps?
	// maxSteps: given twice
	// body: not valid JSON: it ends too early
}

func ExampleClip() {
	fmt.Println(strict.Clip("a long answer", 6))
	// Output: a long… (7 more bytes)
}
