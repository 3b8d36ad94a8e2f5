// Package settings is the one place that defines what the processes read from their environment.
//
// [Load] fills a struct from the environment and checks it; [Describe] lists its variables with their defaults, for
// help texts and documentation.
package settings

import (
	"errors"
	"fmt"
	"strings"

	"github.com/caarlos0/env/v11"

	"github.com/longshore-run/longshore/messages/strict"
)

// Error says that settings are missing or contradict each other.
type Error struct{ msg string }

func (e *Error) Error() string { return e.msg }

// Errorf returns an *Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Checker is a settings struct that can check itself.
type Checker interface{ Check() error }

// Load fills v, a pointer to one of the structs, from the environment and checks it. An *Error names the variable.
func Load(v Checker, environ []string) error {
	if err := parse(v, environ); err != nil {
		return err
	}
	if r, ok := v.(interface{ readProviders(environ []string) error }); ok {
		if err := r.readProviders(environ); err != nil {
			return err
		}
	}
	if r, ok := v.(interface{ readTools(environ []string) error }); ok {
		if err := r.readTools(environ); err != nil {
			return err
		}
	}
	if r, ok := v.(interface{ readPolicy() error }); ok {
		if err := r.readPolicy(); err != nil {
			return err
		}
	}
	return v.Check()
}

// Read fills v from the environment and does not check that it is complete, for programs that bring parts of their own.
func Read(v any, environ []string) error { return parse(v, environ) }

func parse(v any, environ []string) error {
	vars := environment(environ)
	if err := env.ParseWithOptions(v, env.Options{Environment: vars}); err != nil {
		return parseProblem(v, vars, err)
	}
	return nil
}

func environment(environ []string) map[string]string {
	vars := map[string]string{}
	for _, kv := range environ {
		if k, val, ok := strings.Cut(kv, "="); ok {
			vars[k] = val
		}
	}
	return vars
}

// parseProblem names the first variable that cannot be read; the library's error names the Go field.
func parseProblem(v any, vars map[string]string, err error) error {
	if pe, ok := errors.AsType[env.ParseError](err); ok {
		for _, f := range fields(v) {
			if f.field == pe.Name {
				return Errorf("%s: must be %s, got %q", f.name, f.must(), strict.Clip(vars[f.name], 64))
			}
		}
	}
	return Errorf("read settings: %v", err)
}

// first is the first of joined errors: one clear line.
func first(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return err
}
