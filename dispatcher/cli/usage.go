package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/longshore-run/longshore/messages"
)

// UsageError is a mistake in how a command was called: nothing was connected and nothing was done.
type UsageError struct {
	Err error // one line, without control characters
}

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// usage makes a UsageError. A field of a task or a run is called what its flag is called.
func usage(err error) error {
	if err == nil {
		return nil
	}
	if _, already := errors.AsType[*UsageError](err); already {
		return err
	}
	if field, ok := errors.AsType[*messages.FieldError](err); ok {
		err = &messages.FieldError{Field: flagOf(field.Field), Reason: field.Reason}
	}
	return &UsageError{oneLine(err)}
}

func flagOf(field string) string {
	name, rest, nested := strings.Cut(field, ".")
	switch name {
	case "limits":
		return "--max-steps"
	case "labels":
		name = "label"
	case "tenant", "agent", "session", "priority", "context", "requires":
	default:
		return field
	}
	if nested {
		return "--" + name + " " + rest
	}
	return "--" + name
}

// Usage makes every usage error of a tree of commands a *UsageError, those of cobra included: a flag or command that
// does not exist, a missing flag, a wrong number of arguments. Call it last, when the tree is complete. It also
// silences cobra's own printing of errors: the caller of Execute prints them, all but a *RunFailed.
func Usage(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	checkCommand(root)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = knownTopic
		}
	}
}

func checkCommand(cmd *cobra.Command) {
	flagError := cmd.FlagErrorFunc()
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		err = flagValue(flagError(cmd, err))
		_, told := errors.AsType[*UsageError](err) // by the function of the command above it
		if !told && strings.HasPrefix(err.Error(), "unknown ") {
			err = fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
		}
		return usage(err)
	})
	for _, child := range cmd.Commands() {
		checkCommand(child)
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		// Cobra answers an unknown command of a command that cannot run with its help and success.
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		}
	}
	completeNoFiles(cmd)
	args := cmd.Args
	if args == nil {
		args = cobra.ArbitraryArgs // as cobra has it
	}
	cmd.Args = func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return usage(err)
		}
		// Cobra checks these two again, later and without saying what they are.
		if cmd.ValidateRequiredFlags() != nil {
			return missingFlag(cmd)
		}
		return usage(cmd.ValidateFlagGroups())
	}
}

// missingFlag names the first flag that a command needs and did not get.
func missingFlag(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, required := f.Annotations[cobra.BashCompOneRequiredFlag]; required && !f.Changed && err == nil {
			what := ""
			if f.Usage != "" {
				what = ": " + f.Usage
			}
			err = usagef("--%s is missing%s (see %s --help)", f.Name, what, cmd.CommandPath())
		}
	})
	return err
}

func unknownCommand(cmd *cobra.Command, name string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2 // cobra's own default, which it sets elsewhere
	}
	like := cmd.SuggestionsFor(name)
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, name) {
			like = []string{c.Name()} // it is meant, and not only spelled like it
		}
	}
	if len(like) > 0 {
		return usagef("unknown command %q for %q (did you mean %s?)", name, cmd.CommandPath(), strings.Join(like, " or "))
	}
	return usagef("unknown command %q for %q (see %s --help)", name, cmd.CommandPath(), cmd.CommandPath())
}

// knownTopic is for the help command, which otherwise shows another command's help for a name that it does not know.
func knownTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil {
		return usage(err)
	}
	if len(rest) > 0 && found.HasSubCommands() {
		return unknownCommand(found, rest[0])
	}
	return nil
}
