package sandbox

// Limits bound what a workspace holds and what one call costs. Zero means the default, except where [InPlace] says
// otherwise; a negative Total or Files means no quota.
type Limits struct {
	FileSize int64 // Bytes of one file, read or written. Default 1 MiB.
	Total    int64 // Bytes of all files together. Default 256 MiB.
	Files    int   // Files and folders together. Default 10 000.
	Depth    int   // Parts of a path: "a/b/c.txt" has 3. Default 32.
	Listed   int   // Directory entries that one List looks at. Default 10 000.
}

const (
	defaultFileSize = 1 << 20
	defaultTotal    = 256 << 20
	defaultFiles    = 10_000
	defaultDepth    = 32
	defaultListed   = 10_000
)

func (l Limits) withDefaults() Limits {
	if l.FileSize <= 0 {
		l.FileSize = defaultFileSize
	}
	if l.Total == 0 {
		l.Total = defaultTotal
	}
	if l.Files == 0 {
		l.Files = defaultFiles
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	if l.Listed <= 0 {
		l.Listed = defaultListed
	}
	return l
}
