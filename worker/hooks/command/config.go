package command

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools/confined"
)

// Config lists the commands that agents may name as hooks.
type Config struct {
	Commands map[string]Command `json:"commands"`
}

// Command is one program and what it is granted.
type Command struct {
	confined.Config

	Argv []string `json:"argv"` // the program, by its absolute path or a name, and its arguments; no shell reads them
}

// Bounds of Config.
const (
	maxCommands = 64
	maxArgs     = 64
	maxArg      = 4 << 10 // bytes
)

// ParseConfig reads an operator's part. The error is a *messages.FieldError.
func ParseConfig(part []byte) (c Config, _ error) { return c, strict.Decode(part, &c) }

func (c *Config) check() error {
	if len(c.Commands) == 0 || len(c.Commands) > maxCommands {
		return &messages.FieldError{Field: "commands", Reason: fmt.Sprintf("must name 1 to %d commands", maxCommands)}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Commands)) {
		field := "commands." + strict.Shown(name)
		if !messages.IsCommandName(name) {
			return &messages.FieldError{Field: field, Reason: "the name must be 1 to 64 lower-case letters, digits, - and _, and begin with a letter"}
		}
		if err := checkArgv(c.Commands[name].Argv); err != nil {
			return strict.Under(field, err)
		}
	}
	return nil
}

func checkArgv(argv []string) error {
	if len(argv) == 0 || len(argv) > maxArgs || argv[0] == "" {
		return &messages.FieldError{Field: "argv", Reason: fmt.Sprintf("must be a program and at most %d arguments", maxArgs-1)}
	}
	for i, arg := range argv {
		if err := strict.CheckText(fmt.Sprintf("argv[%d]", i), arg, maxArg); err != nil {
			return err
		}
	}
	if program := argv[0]; filepath.Base(program) != program && (!filepath.IsAbs(program) || filepath.Clean(program) != program) {
		return &messages.FieldError{Field: "argv[0]", Reason: "must be a name or a whole path such as /opt/hooks/check"}
	}
	return nil
}
