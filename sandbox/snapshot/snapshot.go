// Package snapshot saves the files of a run after each step that changed some, and restores them for the next claim.
//
// A worker calls [NewFolders] once and [Folders.Of] for each claim of a run. [Folder.Workspace] is what its tools work in: a
// folder of this claim alone, which holds the files of the manifest that the run's log names. [Folder.Save] stores what has
// changed and returns the next manifest, which the owner puts into the same entry as its report. An owner that has been
// superseded writes in its own folder, and its append is refused: the fence of the log is the fence of the files.
//
// A save reads what has changed and nothing else: [Cache] knows the others by size, times and inode. It saves regular files
// and folders, and whether a file is executable. It follows no link, and leaves out links, files with more than one name,
// other file systems, pipes, sockets and devices, and counts them. Limits are errors that name the file.
//
// What a folder holds beyond the manifest in the log is lost with its worker, as a tool call without a record is.
package snapshot

import (
	"context"
	"errors"
	"io"

	"github.com/longshore-run/longshore/messages"
)

// Store keeps contents by tenant and hash.
type Store interface {
	// Has reports whether a content is stored and stays so for as long as a save may take.
	Has(ctx context.Context, tenant, hash string) (bool, error)
	// Stat is Has with the size of the content.
	Stat(ctx context.Context, tenant, hash string) (size int64, ok bool, err error)
	// Put stores a content of size bytes. One that is stored already is no error. What r has beyond is left there; if it has less, or
	// another content than the hash says, nothing is stored and the error is manifest.ErrDamaged.
	Put(ctx context.Context, tenant, hash string, size int64, r io.Reader) error
	// Get writes a content to w, of size bytes at most. A content that is not stored is manifest.ErrMissing, one that is not
	// what its hash says manifest.ErrDamaged; w may have a part of it by then.
	Get(ctx context.Context, tenant, hash string, size int64, w io.Writer) error
	// Refer keeps a manifest, and what it names, for as long as the run is kept. All of it must be stored, by Has or Put, in the
	// same save.
	Refer(ctx context.Context, run messages.Ref, hash string) error
}

// Limits of what is saved. Zero means the default.
type Limits struct {
	Files    int   // files and folders together. Default 10 000
	Total    int64 // bytes of all files together. Default 256 MiB
	FileSize int64 // bytes of one file. Default: Total
	Depth    int   // parts of a path. Default 32
}

const (
	defaultFiles = 10_000
	defaultTotal = 256 << 20
	defaultDepth = 32
)

func (l Limits) withDefaults() Limits {
	if l.Files <= 0 {
		l.Files = defaultFiles
	}
	if l.Total <= 0 {
		l.Total = defaultTotal
	}
	if l.FileSize <= 0 {
		l.FileSize = l.Total
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	return l
}

// errChanged means that a file changed between its hash and its storing, or while it was hashed.
var errChanged = errors.New("changed while it was read")

// atOnce bounds how many contents of one save or restore are on their way at the same time.
const atOnce = 16
