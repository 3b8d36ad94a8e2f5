// Command longshore-sandbox confines itself and becomes a program that is not trusted, as longshore tells it. It is a part of
// longshore, and stands beside it: see package confine, whose init function is all that it does.
package main

import (
	"fmt"
	"os"

	"github.com/longshore-run/longshore/sandbox/process/confine"
)

func main() {
	fmt.Fprintln(os.Stderr, confine.Name+" is started by longshore, which confines programs with it; there is nothing to run by hand")
	os.Exit(2)
}
