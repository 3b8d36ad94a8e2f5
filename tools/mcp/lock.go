package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
)

// Lock is the file of definitions that models are told. `longshore tools pin` writes it, and people read its changes.
type Lock struct {
	APIVersion string                    `json:"apiVersion"`
	Kind       string                    `json:"kind"`
	Servers    map[string]map[string]Pin `json:"servers"` // by server, and by tool as the server calls it
}

// Pin is what a model sees of a tool, for as long as the server defines it as it did.
type Pin struct {
	SHA256      string          `json:"sha256"` // of the definition as the server sends it
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

const (
	lockVersion = "longshore.run/v1"
	lockKind    = "ToolsLock"
	maxLock     = 32 << 20
)

// ReadLock reads a lock file. One that does not exist is empty.
func ReadLock(name string) (*Lock, error) {
	l := &Lock{APIVersion: lockVersion, Kind: lockKind}
	data, err := document.Read(name, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if err := strict.DecodeDepth(strict.Body, strict.MaxDepth, data, l); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if l.APIVersion != lockVersion || l.Kind != lockKind {
		return nil, fmt.Errorf("%s: apiVersion must be %s and kind %s", name, lockVersion, lockKind)
	}
	return l, nil
}

// Write replaces a lock file as a whole.
func (l *Lock) Write(name string) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("encode lock file: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(name), ".mcp-lock-*")
	if err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // gone after the rename
	_, err = temp.Write(append(data, '\n'))
	err = errors.Join(err, temp.Chmod(0o644), temp.Close()) // people and version control read it; it holds no secret
	if err == nil {
		err = os.Rename(temp.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	return nil
}
