package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/longshore-run/longshore/messages"
)

// flagValue is the error of a flag whose value cannot be read, in words of ours: those of the library that reads numbers
// and durations are for programmers.
func flagValue(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	must := ""
	switch f := bad.GetFlag(); f.Value.Type() {
	case "int", "int64", "uint64", "uint", "int32":
		must = "must be a whole number"
	case "float64":
		must = "must be a number"
	case "bool":
		must = "must be true or false"
	case "duration":
		if _, own := f.Value.(*ago); !own {
			must = "must be a time such as 90s, 10m or 2h"
		}
	default:
	}
	if must == "" {
		return err
	}
	return fmt.Errorf("--%s: %s, got %q", bad.GetFlag().Name, must, messages.Clip(bad.GetValue(), 64))
}
