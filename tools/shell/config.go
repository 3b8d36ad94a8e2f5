package shell

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools/confined"
)

// Config is what an operator grants.
type Config struct {
	confined.Config

	// Programs that may be started, as the first of argv: names, whole paths, or "*" for all. What a program starts is its own affair.
	Programs []string `json:"programs"`
	// ShellString lets the model write a command for sh; the program sh must be granted as well.
	ShellString bool            `json:"shellString,omitempty"`
	Effect      messages.Effect `json:"effect,omitempty"` // of every call, if the operator knows better; default once
}

// every grants every program.
const every = "*"

// maxPrograms bounds the names of Config.
const (
	maxPrograms = 256
	maxProgram  = 4 << 10
)

// check checks a configuration and fills in its defaults. The error is a *messages.FieldError.
func (c *Config) check() error {
	wrong := func(field, reason string) error { return &messages.FieldError{Field: field, Reason: reason} }
	if len(c.Programs) == 0 || len(c.Programs) > maxPrograms {
		return wrong("programs", fmt.Sprintf(`must name 1 to %d programs, or "*" for all`, maxPrograms))
	}
	for i, name := range c.Programs {
		field := fmt.Sprintf("programs[%d]", i)
		if name == "" {
			return wrong(field, "is empty")
		}
		if err := strict.CheckText(field, name, maxProgram); err != nil {
			return err
		}
	}
	if c.ShellString && !c.grants(sh) {
		return wrong("shellString", `needs the program "sh" in programs`)
	}
	c.Effect = cmp.Or(c.Effect, messages.EffectOnce)
	switch c.Effect {
	case messages.EffectRead, messages.EffectIdempotent, messages.EffectOnce:
		return nil
	default:
		return wrong("effect", "must be read, idempotent or once")
	}
}

func (c *Config) grants(program string) bool {
	return slices.Contains(c.Programs, every) || slices.Contains(c.Programs, program)
}

// ParseConfig reads an operator's part. The error is a *messages.FieldError.
func ParseConfig(part []byte) (c Config, _ error) { return c, strict.Decode(part, &c) }
