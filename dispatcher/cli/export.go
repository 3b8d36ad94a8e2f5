package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// For commands that stand elsewhere, because of what they link.

// Visible is s on one line of a terminal: what could steer the terminal or hide text is written out.
func Visible(s string) string { return visible(s) }

// Explain is an error of the client about a run, on one line that says what to do next.
func Explain(err error, run messages.Ref) error { return explain(err, run) }

// Usagef is a mistake in how a command was called.
func Usagef(format string, args ...any) error { return usagef(format, args...) }

// OneRun makes cmd a command about one run, which only reads it: named by its id, the beginning of its id, or --last. It
// gives it the flags --tenant, --last and -o, and returns whether that says JSON.
func OneRun(
	cmd *cobra.Command, connect Connect, do func(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref) error,
) (asJSON *bool) {
	c, o := &commands{connect: connect}, &ofRun{}
	o.register(cmd)
	cmd.Args = o.one()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withRun(cmd, o, args, func(client *dispatcher.Client, run messages.Ref) error { return do(cmd, client, run) })
	}
	return &o.output.json
}

// OutputFlag gives a command the flag -o, and returns whether it says JSON.
func OutputFlag(cmd *cobra.Command) (asJSON *bool) {
	var output format
	output.register(cmd)
	return &output.json
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
	return write(cmd.OutOrStdout(), line+"\n")
}
