package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Format of a command's output; it is a flag.
type Format struct{ JSON bool }

// String implements pflag.Value.
func (f *Format) String() string {
	if f.JSON {
		return "json"
	}
	return "text"
}

// Set implements pflag.Value.
func (f *Format) Set(s string) error {
	switch s {
	case "text", "json":
		f.JSON = s == "json"
		return nil
	default:
		return errors.New("must be text or json")
	}
}

// Type implements pflag.Value.
func (*Format) Type() string { return "format" }

// Write writes a text. Its error says that the output could not be written.
func Write(w io.Writer, s string) error {
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// Register adds the flag -o.
func (f *Format) Register(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "text or json")
}

// OutputFlag gives a command the flag -o, and returns whether it says JSON.
func OutputFlag(cmd *cobra.Command) (asJSON *bool) {
	var output Format
	output.Register(cmd)
	return &output.JSON
}

// WriteJSON writes v on a line. Unless the output is no terminal (raw), characters that could steer one are escaped.
func WriteJSON(cmd *cobra.Command, v any, raw bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	line := string(b)
	if !raw {
		line = visibleJSON(line)
	}
	return Write(cmd.OutOrStdout(), line+"\n")
}
