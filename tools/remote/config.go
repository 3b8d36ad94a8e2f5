package remote

import (
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what an operator grants. Zero means the default.
type Config struct {
	Tools   []string          `json:"tools"`            // files of definitions
	Bytes   int               `json:"bytes,omitempty"`  // of an answer; default 256 KiB, at most 1 MiB
	Timeout messages.Duration `json:"timeout,omitzero"` // the most that a definition may give a call; default 1m, at most 1h
}

const (
	maxTools       = 256
	defaultBytes   = 256 << 10
	mostBytes      = 1 << 20
	defaultTimeout = time.Minute
	mostTimeout    = time.Hour
)

// ParseConfig reads an operator's part, checks it and fills in the defaults. The error is a *messages.FieldError.
func ParseConfig(part []byte) (c Config, _ error) {
	if err := strict.Decode(part, &c); err != nil {
		return Config{}, err
	}
	return c, c.check()
}

func (c *Config) check() error {
	wrong := func(field, format string, args ...any) error {
		return &messages.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	if n := len(c.Tools); n == 0 || n > maxTools {
		return wrong("tools", "must name 1 to %d files of definitions", maxTools)
	}
	if c.Bytes == 0 {
		c.Bytes = defaultBytes
	}
	if c.Timeout == 0 {
		c.Timeout = messages.Duration(defaultTimeout)
	}
	switch {
	case c.Bytes < 1 || c.Bytes > mostBytes:
		return wrong("bytes", "must be 1 to %d", mostBytes)
	case c.Timeout < messages.Duration(100*time.Millisecond) || c.Timeout > messages.Duration(mostTimeout):
		return wrong("timeout", "must be 100ms to 1h")
	}
	return nil
}
