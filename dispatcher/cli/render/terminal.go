package render

import (
	"cmp"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether an input or output is a terminal.
func IsTerminal(stream any) bool {
	is := false
	descriptor(stream, func(fd int) { is = term.IsTerminal(fd) })
	return is
}

// Width returns the columns of the terminal that an output is, and DefaultWidth if it is none or does not say.
func Width(output any) int { return cmp.Or(terminalWidth(output), DefaultWidth) }

// terminalWidth is 0 if the output is no terminal, or one that does not say how wide it is.
func terminalWidth(output any) int {
	width := 0
	descriptor(output, func(fd int) {
		if w, _, err := term.GetSize(fd); err == nil && w > 0 {
			width = w
		}
	})
	return width
}

// descriptor does something with the descriptor of a file and leaves its reads interruptible, which File.Fd would not.
func descriptor(stream any, do func(fd int)) {
	f, ok := stream.(*os.File)
	if !ok {
		return
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { do(int(fd)) }) // of a closed file nothing is known
}
