package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/longshore-run/longshore/dispatcher/agents"
)

// What should be free of a disk.
const (
	littleFree = 2 << 30
	hardlyFree = 256 << 20
	sharesFree = 10 // percent
)

// folders looks at those of workspaces, agents and data.
func (d *doctor) folders(context.Context) []Finding {
	var out []Finding
	if d.env.role == roleWorker {
		out = append(out, workspaces(d.env.worker.Workspaces)...)
	}
	if dir := d.env.dispatcher.Agents; dir != "" {
		if defs, err := agents.Load(dir); err != nil {
			out = append(out, fail("agents", "correct the file, or LONGSHORE_AGENTS", "%v", err))
		} else {
			out = append(out, ok("agents", "%d in %s", len(defs), dir))
		}
	}
	if d.data != "" {
		out = append(out, disk("disk of data", d.data))
	}
	return out
}

// workspaces looks at the folder that holds the runs' files, as a worker uses it: a file is made and removed again.
func workspaces(dir string) []Finding {
	const check = "workspaces"
	const do = "set LONGSHORE_WORKSPACES to a folder that this user may write"
	dir = filepath.Clean(dir)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := filepath.Dir(dir)
		if info, err := os.Stat(parent); err != nil || !info.IsDir() {
			return []Finding{warn(check, do, "%s does not exist, nor does %s: a worker creates both", dir, parent)}
		}
		return []Finding{ok(check, "%s does not exist yet: a worker creates it", dir), disk("disk of workspaces", parent)}
	case err != nil:
		return []Finding{fail(check, do, "%v", err)}
	case !info.IsDir():
		return []Finding{fail(check, do, "%s is not a folder", dir)}
	}
	if err := tryRoot(dir); err != nil {
		return []Finding{fail(check, do, "%s: %v", dir, err)}
	}
	found := ok(check, "%s", dir)
	if info.Mode().Perm()&othersRead != 0 {
		found = warn(check, "chmod 700 "+dir, "all users of this machine may look into %s", dir)
	}
	return []Finding{found, disk("disk of workspaces", dir)}
}

// tryRoot writes a file in a folder, and sees that no name leads out of it.
func tryRoot(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open it: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is written by that
	if f, err := root.Open("../" + filepath.Base(dir)); err == nil {
		_ = f.Close()
		return errors.New("a name leads out of the folder")
	}
	name := ".longshore-doctor-" + rand.Text()
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write a file in it: %w", err)
	}
	_, err = f.WriteString("longshore doctor\n")
	if err := errors.Join(err, f.Close(), root.Remove(name)); err != nil {
		return fmt.Errorf("write a file in it: %w", err)
	}
	return nil
}

// disk looks at how much is free where a folder is.
func disk(check, dir string) Finding {
	free, size, err := freeSpace(dir)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return skip(check, "", "it cannot be told on this system")
	case err != nil:
		return fail(check, "correct the name of the folder", "%s: %v", dir, err)
	}
	return space(check, free, size)
}

// space judges what is free.
func space(check string, free, size uint64) Finding {
	const do = "make room, or use a larger disk"
	text := fmt.Sprintf("%s of %s free", bytesOf(int64(min(free, 1<<62))), bytesOf(int64(min(size, 1<<62))))
	switch {
	case free < hardlyFree:
		return fail(check, do, "%s", text)
	case free < littleFree, size > 0 && float64(free)/float64(size)*100 < sharesFree && free < 10*littleFree:
		return warn(check, do, "%s", text)
	default:
		return ok(check, "%s", text)
	}
}
