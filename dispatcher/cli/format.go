package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// format of a command's output; it is a flag.
type format struct{ json bool }

// String implements pflag.Value.
func (f *format) String() string {
	if f.json {
		return "json"
	}
	return "text"
}

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	switch s {
	case "text", "json":
		f.json = s == "json"
		return nil
	default:
		return errors.New("must be text or json")
	}
}

// Type implements pflag.Value.
func (*format) Type() string { return "format" }

// writeJSON writes v on a line. Our own types are written as they are stored and sent; where a terminal may show
// them, characters that could steer it are written as escapes, which means the same.
func (c *commands) writeJSON(cmd *cobra.Command, v any) error {
	return WriteJSON(cmd, v, c.options.Raw)
}

// writeLines writes a list as JSON Lines: an item on each line, none when it is empty.
func writeLines[T any](c *commands, cmd *cobra.Command, items []T) error {
	for i := range items {
		if err := c.writeJSON(cmd, &items[i]); err != nil {
			return err
		}
	}
	return nil
}

func write(w io.Writer, s string) error {
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
