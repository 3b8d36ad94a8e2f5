package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/strict"
)

// flagValue is the error of a flag whose value cannot be read, in words of ours: those of the library that reads numbers
// and durations are for programmers.
func flagValue(err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if unknown.GetSpecifiedShortnames() != "" {
			return fmt.Errorf("unknown flag: -%s", unknown.GetSpecifiedName())
		}
		return fmt.Errorf("unknown flag: --%s", unknown.GetSpecifiedName())
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s: needs a value", bare.GetFlag().Name)
	}
	if bad, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return fmt.Errorf("%q is not a flag: flags are written as --name or --name=value", strict.Clip(bad.GetSpecifiedFlag(), 64))
	}
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	must := ""
	switch f := bad.GetFlag(); f.Value.Type() {
	case "int", "int64", "uint64", "uint", "int32":
		must = "must be a whole number such as 10"
	case "float64":
		must = "must be a number such as 0.5"
	case "bool":
		must = "must be true or false"
	case "duration":
		if _, own := f.Value.(*render.Ago); !own {
			must = "must be a time such as 90s, 10m or 2h"
		}
	default:
	}
	if must == "" { // the flag's own words
		must = errors.Unwrap(bad).Error()
	}
	return fmt.Errorf("--%s: %s, got %q", bad.GetFlag().Name, must, strict.Clip(bad.GetValue(), 64))
}
