package agents_test

import (
	"fmt"

	"github.com/longshore-run/longshore/dispatcher/agents"
)

// What `longshore agents apply -f` reads. An error names the field, and a misspelt one is never lost in silence.
func ExampleParse() {
	const writer = `
apiVersion: longshore.run/v1
kind: Agent
metadata:
  name: writer
spec:
  instructions: Write plainly.
  tools: [read_file, write_file]
  maxSteps: 12
`
	defs, err := agents.Parse([]byte(writer))
	if err != nil {
		panic(err)
	}
	fmt.Println(defs[0].Name, defs[0].Tools, defs[0].MaxSteps)

	_, err = agents.Parse([]byte(writer + "  temprature: 0\n"))
	fmt.Println(err)
	// Output:
	// writer [read_file write_file] 12
	// spec.temprature: unknown field: did you mean temperature? (line 10)
}
