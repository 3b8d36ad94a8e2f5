package messages

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Decode reads JSON strictly into v.
func Decode(data []byte, v any) error { return decodeNamed("body", data, v) }

func decodeNamed(name string, data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return &FieldError{name, err.Error()}
	}
	return nil
}

func asFieldError(err error) (*FieldError, bool) {
	var fe *FieldError
	ok := errors.As(err, &fe)
	return fe, ok
}

func checkText(field, s string, limit int) error {
	if len(s) > limit {
		return &FieldError{field, fmt.Sprintf("larger than %d bytes", limit)}
	}
	return nil
}
