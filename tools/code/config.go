package code

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools/confined"
)

// Config is what an operator grants. JavaScript is always offered.
type Config struct {
	confined.Config

	Python   string            `json:"python,omitempty"`  // whole path of the interpreter, such as /usr/bin/python3; default none
	Packages map[string]string `json:"packages,omitzero"` // of a language: the folder of the host whose packages programs may import
}

// Languages.
const (
	javaScript = "javascript"
	python     = "python"
)

// maxPath bounds paths of Config.
const maxPath = 4 << 10

// check checks a configuration. The error is a *messages.FieldError.
func (c *Config) check() error {
	wrong := func(field, reason string) error { return &messages.FieldError{Field: field, Reason: reason} }
	whole := func(path string) bool {
		return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/" && len(path) <= maxPath
	}
	if c.Python != "" && !whole(c.Python) {
		return wrong("python", "must be a whole path such as /usr/bin/python3")
	}
	for _, language := range slices.Sorted(maps.Keys(c.Packages)) {
		field := "packages." + strict.Shown(language)
		if !slices.Contains(c.languages(), language) {
			return wrong(field, fmt.Sprintf("is none of the languages here, which are %v", c.languages()))
		}
		if !whole(c.Packages[language]) {
			return wrong(field, "must be a whole path such as /srv/packages")
		}
	}
	return nil
}

// languages are those that a program can be written in.
func (c *Config) languages() []string {
	if c.Python == "" {
		return []string{javaScript}
	}
	return []string{javaScript, python}
}

// ParseConfig reads an operator's part. The error is a *messages.FieldError.
func ParseConfig(part []byte) (c Config, _ error) { return c, strict.Decode(part, &c) }
