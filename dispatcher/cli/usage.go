package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

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
		_, told := errors.AsType[*render.UsageError](err) // by the function of the command above it
		if !told && strings.HasPrefix(err.Error(), "unknown ") {
			err = fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
		}
		return render.Misuse(err)
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
			return render.Misuse(err)
		}
		// Cobra checks these two again, later and without saying what they are.
		if cmd.ValidateRequiredFlags() != nil {
			return missingFlag(cmd)
		}
		return render.Misuse(cmd.ValidateFlagGroups())
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
			err = render.Usagef("--%s is missing%s (see %s --help)", f.Name, what, cmd.CommandPath())
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
		return render.Usagef("unknown command %q for %q (did you mean %s?)", name, cmd.CommandPath(), strings.Join(like, " or "))
	}
	return render.Usagef("unknown command %q for %q (see %s --help)", name, cmd.CommandPath(), cmd.CommandPath())
}

// knownTopic is for the help command, which otherwise shows another command's help for a name that it does not know.
func knownTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil {
		return render.Misuse(err)
	}
	if len(rest) > 0 && found.HasSubCommands() {
		return unknownCommand(found, rest[0])
	}
	return nil
}
