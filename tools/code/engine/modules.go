package engine

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"modernc.org/quickjs"
)

// namesOf are the names of entries as JSON, sorted.
func namesOf(all []fs.DirEntry) (string, error) {
	names := make([]string, len(all))
	for i, e := range all {
		if names[i] = e.Name(); e.IsDir() {
			names[i] += "/"
		}
	}
	slices.Sort(names)
	text, err := json.Marshal(names)
	return string(text), err
}

// modules finds what a program imports: paths such as ./a.js in its folder, names in the folder of packages.
type modules struct {
	folder   *os.Root
	packages *os.Root // nil: there are none
}

// Prefixes of the names of modules, which say where a module is.
const (
	inFolder   = "workspace/"
	inPackages = "packages/"
)

// maxModule bounds a module, in bytes.
const maxModule = 4 << 20

// normalise gives a module the one name that it has for all who import it.
func (m *modules) normalise(_ *quickjs.VM, base, name string) (string, error) {
	if !strings.HasPrefix(name, "./") && !strings.HasPrefix(name, "../") {
		if m.packages == nil {
			return "", fmt.Errorf("cannot import %q: there are no packages here; import files of the workspace as ./name.js", name)
		}
		return find(m.packages, inPackages, path.Clean(name))
	}
	in, root := inFolder, m.folder
	if strings.HasPrefix(base, inPackages) {
		in, root = inPackages, m.packages
	}
	return find(root, in, path.Join(path.Dir(strings.TrimPrefix(base, in)), name))
}

// find is the file of a module: as it is named, with .js, or the index of a folder.
func find(root *os.Root, in, name string) (string, error) {
	for _, file := range []string{name, name + ".js", name + ".mjs", path.Join(name, "index.js"), path.Join(name, "index.mjs")} {
		if info, err := root.Stat(file); err == nil && info.Mode().IsRegular() {
			return in + file, nil
		}
	}
	return "", fmt.Errorf("cannot import %q: there is no such file", name)
}

// load reads a module by the name that normalise gave it.
func (m *modules) load(_ *quickjs.VM, name string) (string, error) {
	root, file := m.folder, strings.TrimPrefix(name, inFolder)
	if rest, ok := strings.CutPrefix(name, inPackages); ok {
		root, file = m.packages, rest
	}
	data, err := readRegular(root, file, maxModule)
	return string(data), err
}
