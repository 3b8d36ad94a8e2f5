package scripted

import (
	_ "embed"
	"fmt"
)

//go:embed demo.yaml
var demo []byte

// Demo is the built-in script, for use without a key: it writes the task to a file, lists the files, and answers
// with the list and the plain statement that no real model was asked. Without file tools it only answers, as it does in the JSON protocol.
func Demo() *Script {
	s, err := Parse(demo)
	if err != nil {
		panic(fmt.Sprintf("scripted: the built-in script is broken: %v", err)) // a test parses it
	}
	return s
}
