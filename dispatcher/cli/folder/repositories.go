package folder

import (
	"path"
	"strings"

	"github.com/longshore-run/longshore/messages/manifest"
)

// whyRepository is why nothing is written into a folder that git would take for a repository.
const whyRepository = "git would take a folder of its path for a repository, and what is written there can have git run programs"

// repositories are folders that git takes for repositories although none is called .git, by their names in lower case.
type repositories map[string]bool

// repositories returns those of the folder together with the files that a run has left. Each has a file HEAD, and objects or the path of
// another repository that has them; these may be what was not uploaded.
func (f *Folder) repositories(left *manifest.Manifest) repositories {
	heads, stores := map[string]string{}, repositories{}
	for _, list := range []*manifest.Manifest{f.Files, left} {
		for i := range list.Files {
			name := list.Files[i].Path
			parts := lower(strings.Split(name, "/"))
			for at, part := range parts {
				dir, end := path.Join(parts[:at]...), at == len(parts)-1
				switch {
				case end && part == "head":
					heads[dir] = path.Dir(name)
				case end && part == "commondir", !end && part == "objects":
					stores[dir] = true
				}
			}
		}
	}
	found := repositories{}
	for dir, name := range heads {
		_, objects := f.root.Lstat(path.Join(name, "objects"))
		_, common := f.root.Lstat(path.Join(name, "commondir"))
		if stores[dir] || objects == nil || common == nil {
			found[dir] = true
		}
	}
	return found
}

// have reports whether a path is in one of the repositories.
func (r repositories) have(name string) bool {
	parts := lower(strings.Split(name, "/"))
	for at := range parts {
		if r[path.Join(parts[:at]...)] {
			return true
		}
	}
	return false
}
