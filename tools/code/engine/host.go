package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"modernc.org/quickjs"
)

// Limits of files.
const (
	maxFile = 16 << 20
	maxList = 10_000
)

// host is what a program can call.
type host struct {
	out    *bufio.Writer // flushed before anything is written to err
	err    io.Writer
	folder *os.Root
}

// prelude gives a program names that it cannot change. Values are written as console does in a browser: text as it is, the rest as JSON.
const prelude = `(() => {
	const write = __write, read = __read, save = __save, list = __list;
	const text = JSON.stringify, isError = (v) => v instanceof Error, name = String;
	const show = (v) => {
		if (typeof v === "string") return v;
		if (typeof v === "object" && v !== null && !isError(v)) {
			try { const s = text(v); if (s !== undefined) return s; } catch {}
		}
		if (isError(v)) return name(v.stack ? v + "\n" + v.stack : v).trimEnd();
		return name(v);
	};
	const line = (to) => (...args) => { write(to, args.map(show).join(" ") + "\n"); };
	const out = line("out"), err = line("err");
	const fixed = (object, key, value) => Object.defineProperty(object, key, { value, writable: false, configurable: false, enumerable: false });
	fixed(globalThis, "console", Object.freeze({ log: out, info: out, debug: out, warn: err, error: err }));
	fixed(globalThis, "readFile", Object.freeze((path) => read(name(path))));
	fixed(globalThis, "writeFile", Object.freeze((path, content) => { save(name(path), name(content)); }));
	fixed(globalThis, "listFiles", Object.freeze((path = ".") => JSON.parse(list(name(path)))));
	for (const key of ["__write", "__read", "__save", "__list"]) delete globalThis[key];
})();`

func (h *host) register(vm *quickjs.VM) error {
	for name, f := range map[string]quickjs.HostFunc{
		"__write": h.write, "__read": h.read, "__save": h.save, "__list": h.list,
	} {
		if err := vm.RegisterHostFunc(name, f); err != nil {
			return err
		}
	}
	v, err := vm.EvalValue(prelude, quickjs.EvalGlobal)
	if err != nil {
		return err
	}
	v.Free()
	return nil
}

// texts are arguments that are texts: the prelude sees to it.
func texts(args []any, n int) ([]string, error) {
	out := make([]string, n)
	for i := range out {
		s, ok := "", false
		if i < len(args) {
			s, ok = args[i].(string)
		}
		if !ok {
			return nil, errors.New("a text is missing")
		}
		out[i] = s
	}
	return out, nil
}

func (h *host) write(args []any) (any, error) {
	in, err := texts(args, 2)
	if err != nil {
		return nil, err
	}
	if in[0] == "err" {
		if err := h.out.Flush(); err != nil {
			return nil, err
		}
		_, err = io.WriteString(h.err, in[1])
		return nil, err
	}
	if _, err := h.out.WriteString(in[1]); err != nil {
		return nil, err
	}
	return nil, h.out.Flush() // people may watch
}

func (h *host) read(args []any) (any, error) {
	in, err := texts(args, 1)
	if err != nil {
		return nil, err
	}
	data, err := readRegular(h.folder, in[0], maxFile)
	if err != nil {
		return nil, err
	}
	return string(data), nil
}

// readRegular reads a file of a folder that is not too large. It never waits for the other end of a pipe.
func readRegular(folder *os.Root, name string, most int64) ([]byte, error) {
	info, err := folder.Stat(name)
	if err != nil {
		return nil, plain(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is not a file", name)
	}
	f, err := folder.Open(name)
	if err != nil {
		return nil, plain(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, plain(err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: is larger than %d bytes", name, most)
	}
	return data, nil
}

func (h *host) save(args []any) (any, error) {
	in, err := texts(args, 2)
	if err != nil {
		return nil, err
	}
	if dir := path.Dir(in[0]); dir != "." {
		if err := h.folder.MkdirAll(dir, 0o755); err != nil {
			return nil, plain(err)
		}
	}
	return nil, plain(h.folder.WriteFile(in[0], []byte(in[1]), 0o644))
}

// list are the names in a folder as JSON; those of folders end with a slash.
func (h *host) list(args []any) (any, error) {
	in, err := texts(args, 1)
	if err != nil {
		return nil, err
	}
	dir, err := h.folder.Open(in[0])
	if err != nil {
		return nil, plain(err)
	}
	defer func() { _ = dir.Close() }()
	all, err := dir.ReadDir(maxList)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, plain(err)
	}
	return namesOf(all)
}

// plain is an error without what the program does not know: operations of the system.
func plain(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %s", at.Path, strings.TrimPrefix(at.Err.Error(), "openat "))
	}
	return err
}
