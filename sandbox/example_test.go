package sandbox_test

import (
	"context"
	"fmt"
	"os"

	"github.com/longshore-run/longshore/sandbox"
)

// A workspace is all that the file tools of a run reach, and its size has a bound.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	w, err := sandbox.Open(dir, sandbox.Limits{Total: 64})
	if err != nil {
		panic(err)
	}
	defer w.Close()

	fmt.Println(w.Write("reports/monday.md", []byte("All quiet.")))
	text, err := w.Read("reports/monday.md")
	fmt.Println(string(text), err)
	fmt.Println(w.List(context.Background()))

	_, err = w.Read("../../etc/passwd")
	fmt.Println(err)
	fmt.Println(w.Write("big.md", make([]byte, 100)))
	// Output:
	// <nil>
	// All quiet. <nil>
	// [reports/monday.md] <nil>
	// ../../etc/passwd: must stay inside the workspace
	// big.md: the workspace is full: all files together may have 64 bytes
}
