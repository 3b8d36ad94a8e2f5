package command

import (
	"fmt"
	"io"
	"time"
)

// sayStopping says what the end of a worker waits for, and how its runs continue.
func sayStopping(w io.Writer, held int, timeout time.Duration, resume string) {
	runs := fmt.Sprintf("%d runs to end their current step, at most %s; they continue", held, timeout)
	switch held {
	case 0:
		fmt.Fprintln(w, "Stopping: there are no runs to wait for.")
		return
	case 1:
		runs = fmt.Sprintf("1 run to end its current step, at most %s; it continues", timeout)
	}
	fmt.Fprintf(w, "Stopping: waiting for %s %s. Press Ctrl-C again to end at once.\n", runs, resume)
}
