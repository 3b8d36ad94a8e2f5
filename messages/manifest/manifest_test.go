package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages/manifest"
)

func file(path, content string) manifest.File {
	return manifest.File{Path: path, Size: int64(len(content)), Hash: manifest.HashOf([]byte(content))}
}

func TestEncodeAndDecode(t *testing.T) {
	t.Parallel()
	m := &manifest.Manifest{Files: []manifest.File{file("a b/ü.txt", "x"), file("run.sh", "y")}, Folders: []string{"empty/deep"}, LeftOut: 2}
	m.Files[1].Exec = true
	data, hash, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if want := manifest.HashOf(data); hash != want || !manifest.ValidHash(hash) {
		t.Errorf("the hash is %s, want %s", hash, want)
	}
	back, err := manifest.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, back); diff != "" {
		t.Error(diff)
	}
	if back.Bytes() != 2 {
		t.Errorf("Bytes is %d", back.Bytes())
	}
	if f, ok := back.Find("run.sh"); !ok || !f.Exec {
		t.Errorf("Find says %v, %v", f, ok)
	}
	if _, ok := back.Find("run"); ok {
		t.Error("Find knows a file that is not listed")
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	hash := manifest.HashOf(nil)
	entry := func(path string) string { return fmt.Sprintf(`{"path":%q,"size":1,"hash":%q}`, path, hash) }
	for name, data := range map[string]string{
		"no JSON":             `{`,
		"another version":     `{"version":2}`,
		"an unknown field":    `{"version":1,"x":1}`,
		"outside":             `{"version":1,"files":[` + entry("../x") + `]}`,
		"absolute":            `{"version":1,"files":[` + entry("/x") + `]}`,
		"dot":                 `{"version":1,"files":[` + entry(".") + `]}`,
		"empty":               `{"version":1,"files":[` + entry("") + `]}`,
		"a line break":        `{"version":1,"files":[{"path":"a\nb","size":1,"hash":"` + hash + `"}]}`,
		"a direction mark":    `{"version":1,"files":[{"path":"a\u202eb","size":1,"hash":"` + hash + `"}]}`,
		"twice":               `{"version":1,"files":[` + entry("a") + `,` + entry("a") + `]}`,
		"not sorted":          `{"version":1,"files":[` + entry("b") + `,` + entry("a") + `]}`,
		"below a file":        `{"version":1,"files":[` + entry("a") + `,` + entry("a/b") + `]}`,
		"below a far file":    `{"version":1,"files":[` + entry("a") + `,` + entry("a!") + `,` + entry("a/b/c") + `]}`,
		"a file and a folder": `{"version":1,"files":[` + entry("a") + `],"folders":["a"]}`,
		"a folder in a file":  `{"version":1,"files":[` + entry("a") + `],"folders":["a/b"]}`,
		"a folder outside":    `{"version":1,"folders":["a/../.."]}`,
		"folders not sorted":  `{"version":1,"folders":["b","a"]}`,
		"a negative size":     `{"version":1,"files":[{"path":"a","size":-1,"hash":"` + hash + `"}]}`,
		"no hash":             `{"version":1,"files":[{"path":"a","size":1,"hash":"` + strings.ToUpper(hash) + `"}]}`,
		"a negative count":    `{"version":1,"leftOut":-1}`,
	} {
		if m, err := manifest.Decode([]byte(data)); err == nil {
			t.Errorf("%s: accepted as %+v", name, m)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	exec := file("c", "3")
	exec.Exec = true
	from := &manifest.Manifest{Files: []manifest.File{file("a", "1"), file("b", "2"), file("c", "3"), file("d", "4")}}
	to := &manifest.Manifest{Files: []manifest.File{file("b", "two"), exec, file("d", "4"), file("e", "5")}}
	want := manifest.Changes{
		Added: []manifest.File{file("e", "5")}, Changed: []manifest.File{file("b", "two"), exec}, Removed: []manifest.File{file("a", "1")},
	}
	got := manifest.Compare(from, to)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if none := manifest.Compare(to, to); !none.Empty() || got.Empty() {
		t.Errorf("the same files differ: %+v", none)
	}
	if all := manifest.Compare(nil, from); len(all.Added) != 4 {
		t.Errorf("all are new, but %+v", all)
	}
	if all := manifest.Compare(from, nil); len(all.Removed) != 4 {
		t.Errorf("all are gone, but %+v", all)
	}
}
