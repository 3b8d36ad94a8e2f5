package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/longshore-run/longshore/messages/manifest"
)

// List is Scan without a look into the files, whose hashes are missing, for folders that are not uploaded. A folder that cannot be read is left
// out. It must be closed.
func List(ctx context.Context, dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	f := &Folder{root: root, Files: &manifest.Manifest{}, lenient: true}
	if err := f.scan(ctx, f.listed); err != nil {
		return nil, errors.Join(fmt.Errorf("read folder %s: %w", dir, err), root.Close())
	}
	return f, nil
}

// listed is a file without its content; nil: there is none.
func (f *Folder) listed(name string) (*manifest.File, error) {
	info, err := f.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular():
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &manifest.File{Path: name, Size: info.Size()}, nil
}

// LooksSecret reports whether files of this name often hold secrets: a folder leaves them out unless its rules say otherwise.
func LooksSecret(name string) bool {
	return new(rules).why(strings.Split(name, "/"), false) == WhySecret
}
