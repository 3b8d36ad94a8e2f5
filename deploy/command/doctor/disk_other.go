//go:build !linux && !darwin

package doctor

import "errors"

func freeSpace(string) (free, size uint64, err error) { return 0, 0, errors.ErrUnsupported }
