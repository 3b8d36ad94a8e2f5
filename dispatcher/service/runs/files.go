package runs

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
)

// maxFileNames bounds the names of the files that a result lists, in bytes.
const maxFileNames = 16 << 10

// Saved is a file as lists show it.
func Saved(f manifest.File) messages.SavedFile {
	return messages.SavedFile{Name: f.Path, Size: f.Size, Type: messages.MediaType(f.Path), Hash: f.Hash, Exec: f.Exec}
}

// withFiles is a result with the first of its files. One whose list can no longer be read shows how many there were.
func (rs *Runs) withFiles(ctx context.Context, ref messages.Ref, r *messages.AgentResult) (*messages.AgentResult, error) {
	if r.Files == nil {
		return r, nil
	}
	m, err := rs.cfg.Files.Manifest(ctx, ref.Tenant, r.Files.Manifest)
	switch {
	case errors.Is(err, manifest.ErrMissing) || errors.Is(err, manifest.ErrDamaged):
		rs.cfg.Log.WarnContext(ctx, "read the files of a run", "tenant", ref.Tenant, "task_id", ref.Run, "err", err)
		return r, nil
	case err != nil:
		return nil, err
	}
	with, files, room := *r, *r.Files, maxFileNames
	with.Files, files.List = &files, nil
	for _, f := range m.Files {
		if room -= len(f.Path); len(files.List) == messages.MaxResultFiles || room < 0 {
			break
		}
		files.List = append(files.List, Saved(f))
	}
	return &with, nil
}
