package sandbox

import "io/fs"

// Stat returns the size in bytes of a regular file that Read would return.
func (w *Workspace) Stat(name string) (size int64, err error) {
	if err := w.ready(); err != nil {
		return 0, err
	}
	_, info, err := w.find(name)
	if err == nil && info == nil {
		err = fs.ErrNotExist
	}
	if err == nil {
		err = w.admit(name, info)
	}
	if err != nil {
		return 0, translate("look at", name, err)
	}
	return info.Size(), nil
}
