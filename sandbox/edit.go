package sandbox

// Edit replaces the content of a regular file by what change makes of it, with the promises of Write. No other write through
// this Workspace comes between. When change returns an error, Edit returns it as it is and the file stays as it was.
func (w *Workspace) Edit(name string, change func(old []byte) ([]byte, error)) error {
	if err := w.change(); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	old, err := w.read(name)
	if err != nil {
		return translate("read", name, err)
	}
	data, err := change(old)
	if err != nil {
		return err
	}
	if err := w.write(name, data); err != nil {
		return translate("write", name, err)
	}
	return nil
}
