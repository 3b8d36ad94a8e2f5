package strict

import (
	"errors"
	"strings"
)

// FieldError says which field of an input is wrong and why. Field is a path such as "limits.maxSteps" or
// "labels[3].name"; it is "task" or the like when the whole input is meant.
type FieldError struct {
	Field, Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// Under puts the field of an error from Decode below another.
func Under(path string, err error) error {
	fe, ok := errors.AsType[*FieldError](err)
	if !ok {
		return err
	}
	rest, whole := strings.CutPrefix(fe.Field, Body)
	switch {
	case !whole || rest != "" && rest[0] != '[':
		path += "." + fe.Field
	default:
		path += rest
	}
	return &FieldError{Field: Clip(path, MaxPath), Reason: fe.Reason}
}
