//go:build !linux

package sandbox_test

import "errors"

func mountTemp(string) error { return errors.ErrUnsupported }

func unmount(string) error { return nil }
