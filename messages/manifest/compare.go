package manifest

// Changes lead from one manifest to another, each sorted by path.
type Changes struct {
	Added   []File
	Changed []File // as they are afterwards
	Removed []File // as they were
}

// Empty reports whether the files are the same. Folders without files may differ.
func (c *Changes) Empty() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) == 0 }

// Compare says what has changed in the files. Nil stands for no files.
func Compare(from, to *Manifest) (c Changes) {
	var old, now []File
	if from != nil {
		old = from.Files
	}
	if to != nil {
		now = to.Files
	}
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].Path < now[0].Path:
			c.Removed, old = append(c.Removed, old[0]), old[1:]
		case len(old) == 0 || now[0].Path < old[0].Path:
			c.Added, now = append(c.Added, now[0]), now[1:]
		default:
			if old[0] != now[0] {
				c.Changed = append(c.Changed, now[0])
			}
			old, now = old[1:], now[1:]
		}
	}
	return c
}
