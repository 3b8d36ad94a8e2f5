package folder

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
)

// Upload stores what the folder has and the fleet has not, and returns the manifest for a task; empty: there are no files. If progress is
// not nil, it is called with the size of each file once it is stored, perhaps by several goroutines at once.
func (f *Folder) Upload(ctx context.Context, client *dispatcher.Client, tenant string, progress func(bytes int64)) (hash string, err error) {
	if len(f.Files.Files) == 0 {
		return "", nil
	}
	data, hash, err := f.Files.Encode()
	if err != nil {
		return "", err
	}
	contents := make([]dispatcher.Upload, len(f.Files.Files))
	for i, file := range f.Files.Files {
		contents[i] = dispatcher.Upload{Content: control.Content{Hash: file.Hash, Size: file.Size}, Open: func() (io.ReadCloser, error) {
			return f.Open(file)
		}}
	}
	if err := client.Files().UploadAll(ctx, tenant, contents, progress); err != nil {
		return "", fmt.Errorf("upload the folder: %w", err)
	}
	if _, err := client.Files().Upload(ctx, tenant, bytes.NewReader(data)); err != nil {
		return "", fmt.Errorf("upload the list of files: %w", err)
	}
	return hash, nil
}

// Open opens a file of the folder for reading. Its errors name the file; dispatcher.ErrContentChanged: it has another size by now.
func (f *Folder) Open(file manifest.File) (io.ReadCloser, error) {
	r, err := f.root.Open(file.Path)
	if err != nil {
		return nil, err
	}
	info, err := r.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != file.Size) {
		err = fmt.Errorf("%s: %w", file.Path, dispatcher.ErrContentChanged)
	}
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}
