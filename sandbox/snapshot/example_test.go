package snapshot_test

import (
	"context"
	"fmt"
	"os"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox/snapshot"
)

// A claim of a run writes a file, and the next one has it on another machine: what moves is one hash in the run's log.
func Example() {
	ctx, store := context.Background(), &snapshot.Memory{}
	run := messages.Ref{Tenant: "acme", Run: "r1"}
	machine := func() (_ *snapshot.Folders, remove func()) {
		dir, err := os.MkdirTemp("", "longshore-example-")
		if err != nil {
			panic(err)
		}
		folders, err := snapshot.NewFolders(snapshot.Config{Dir: dir, Store: store})
		if err != nil {
			panic(err)
		}
		return folders, func() { _, _ = folders.Close(), os.RemoveAll(dir) }
	}
	here, removeHere := machine()
	defer removeHere()
	there, removeThere := machine()
	defer removeThere()

	first, _ := here.Of(run, "claim-1")
	if err := first.Workspace(ctx, "").Write("notes/a.txt", []byte("A ship came in.")); err != nil {
		fmt.Println(err)
		return
	}
	saved, err := first.Save(ctx, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range saved.Changes.Added {
		fmt.Println("added", f.Path, f.Size)
	}

	second, _ := there.Of(run, "claim-2")
	text, err := second.Workspace(ctx, saved.Hash).Read("notes/a.txt")
	fmt.Println(string(text), err)
	again, err := second.Save(ctx, true)
	fmt.Println(again == nil, err)
	// Output:
	// added notes/a.txt 15
	// A ship came in. <nil>
	// true <nil>
}
