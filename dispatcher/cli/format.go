package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// writeJSON writes v on a line. Our own types are written as they are stored and sent.
func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	return write(w, string(b)+"\n")
}

func write(w io.Writer, s string) error {
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
