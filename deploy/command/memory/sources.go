package memory

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/command/memory/parts"
	"github.com/longshore-run/longshore/dispatcher/cli/folder"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// source is a document that is to be imported.
type source struct {
	name    string // under which it is kept
	open    func(context.Context) (io.ReadCloser, error)
	within  bool   // a folder that was named: what is no text there is left out
	refused string // why it is not read
}

// read is the content of a document.
func (s *source) read(ctx context.Context) ([]byte, error) {
	switch {
	case s.refused != "":
		return nil, errors.New(s.refused)
	case len(s.name) > longterm.MaxSource:
		return nil, errors.New("its name is longer than 512 bytes")
	}
	r, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	data, err := document.Bounded(r, parts.MaxFile)
	return data, errors.Join(err, r.Close())
}

// sources are the documents of a command line.
type sources struct {
	documents []source
	roots     []root // the folders among them
	notTaken  string // what folders leave out
	opened    []io.Closer
}

func (s *sources) close() {
	for _, c := range s.opened {
		_ = c.Close() // it was only read
	}
}

// add takes a file, a folder, or the standard input, which is kept under the given name.
func (s *sources) add(cmd *cobra.Command, arg, stdin string) error {
	if arg == render.FromInput {
		s.documents = append(s.documents, source{name: stdin, open: func(ctx context.Context) (io.ReadCloser, error) {
			data, err := render.ReadInput(ctx, cmd.InOrStdin(), parts.MaxFile)
			return io.NopCloser(strings.NewReader(string(data))), err
		}})
		return nil
	}
	name := filepath.ToSlash(filepath.Clean(arg))
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		return s.addFolder(cmd.Context(), arg, name)
	}
	one := source{name: name, open: func(context.Context) (io.ReadCloser, error) { return document.Open(arg) }}
	if folder.LooksSecret(path.Base(name)) {
		one.refused = "its name is one of files that hold secrets: pipe it to - if it is a document"
	}
	s.documents = append(s.documents, one)
	return nil
}

func (s *sources) addFolder(ctx context.Context, dir, name string) error {
	f, err := folder.List(ctx, dir)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, f)
	s.roots = append(s.roots, rootOf(name, f))
	s.notTaken += f.NotTaken("import", "imported")
	hidden := int64(0)
	for _, file := range f.Files.Files {
		if strings.HasPrefix(file.Path, ".") || strings.Contains(file.Path, "/.") {
			hidden++
			continue
		}
		s.documents = append(s.documents, source{name: path.Join(name, file.Path), within: true, open: func(context.Context) (io.ReadCloser, error) {
			return opened(f, file)
		}})
	}
	if hidden > 0 {
		s.notTaken += "Not imported: " + render.Count(hidden, "hidden file") + "\n"
	}
	return nil
}

// opened opens a file of a folder that may have changed since.
func opened(f *folder.Folder, file manifest.File) (io.ReadCloser, error) {
	if file.Size > parts.MaxFile {
		return nil, errors.New("it is larger than 67108864 bytes, which is the limit")
	}
	return f.Open(file)
}
