package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is what a Store does to its folder. Paths are relative to it, with slashes.
type disk interface {
	// add appends to a file, which is made with its folder, and returns when all of it is stored.
	add(path string, data []byte) error
	truncate(path string, size int64) error
	remove(path string) error
}

const (
	privateDir  = 0o700
	privateFile = 0o600
)

// folder is the disk of a folder.
type folder string

func (d folder) add(path string, data []byte) error {
	full := filepath.Join(string(d), filepath.FromSlash(path))
	_, err := os.Lstat(full)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		if err := os.MkdirAll(filepath.Dir(full), privateDir); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_APPEND, privateFile)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write segment: %w", err)
	}
	if !fresh {
		return nil
	}
	for dir := filepath.Dir(full); len(dir) >= len(filepath.Clean(string(d))); dir = filepath.Dir(dir) {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (d folder) truncate(path string, size int64) error {
	f, err := os.OpenFile(filepath.Join(string(d), filepath.FromSlash(path)), os.O_WRONLY, privateFile)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	err = f.Truncate(size)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("truncate segment: %w", err)
	}
	return nil
}

func (d folder) remove(path string) error {
	full := filepath.Join(string(d), filepath.FromSlash(path))
	if err := os.Remove(full); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove segment: %w", err)
	}
	return syncDir(filepath.Dir(full))
}

// syncDir makes the names in a folder durable, where the system can.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	_ = f.Sync() // not every file system has it for folders
	if err := f.Close(); err != nil {
		return fmt.Errorf("close folder: %w", err)
	}
	return nil
}
