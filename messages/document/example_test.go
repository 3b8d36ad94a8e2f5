package document_test

import (
	"fmt"

	"github.com/longshore-run/longshore/messages/document"
)

// A file may hold several documents; each becomes JSON, which the strict decoder reads.
func ExampleAll() {
	docs, err := document.All([]byte("name: writer\nmaxSteps: 3\n---\nname: reviewer\n"), 1<<10)
	if err != nil {
		panic(err)
	}
	for _, d := range docs {
		fmt.Printf("line %d: %s\n", d.Line, d.JSON)
	}
	_, err = document.All([]byte("name: writer\nname: reviewer\n"), 1<<10)
	fmt.Println(err)
	// Output:
	// line 1: {"maxSteps":3,"name":"writer"}
	// line 4: {"name":"reviewer"}
	// read YAML: line 2: mapping key "name" already defined at line 1
}
