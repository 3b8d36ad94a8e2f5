package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
)

// What is switched off.
const (
	firstUnsaid ablation = "rule 30: the first entry does not say what the task brings"
	firstApart  ablation = "rule 30: what the task brings is recorded after the first entry"
	unkept      ablation = "rule 30: admission does not have the run refer to what its task names"
)

// The ways in which a task brings files, one for each fifth of the seeds of files.
const (
	bringsNothing = iota
	bringsText
	bringsData
	namesContents
	namesManifest
	waysToBring
)

// bring gives the task of a seed its files, as admission has left them in the store. The tool "idem" changes one of them, the others stay.
func (f *simFiles) bring(t *testing.T, seed uint64, rules ablation) {
	t.Helper()
	way := int(seed % waysToBring)
	if way == bringsNothing || rules == oneFolder { // which has no first files
		return
	}
	contents := map[string]string{"book": "first\n", "bin/tool": "#!", "twice": "#!", "empty": ""}
	for path, content := range contents {
		file := messages.TaskFile{Path: path, Exec: path == "bin/tool"}
		switch {
		case way == bringsData && content != "":
			file.Data = []byte(content)
		case way == namesContents && path != "twice" || way == namesManifest:
			file.Hash, file.Size = f.keep(t, []byte(content)), int64(len(content))
		default:
			file.Text = &content
		}
		f.task.Files = append(f.task.Files, file)
	}
	first := f.task.FirstFiles()
	if way >= namesContents {
		if way == namesManifest {
			first.Folders, f.task.Files = []string{"folder"}, nil
		}
		data, hash, err := first.Encode()
		if err != nil {
			t.Fatal(err)
		}
		f.keep(t, data)
		if rules != unkept {
			f.refs[hash] = true
		}
		if way == namesManifest {
			f.task.Manifest = hash
		}
	}
	f.first = first
	f.brought = contents
}

// keep stores what was uploaded, and that no process relies on.
func (f *simFiles) keep(t *testing.T, data []byte) (hash string) {
	t.Helper()
	hash = manifest.HashOf(data)
	if err := f.Memory.Put(context.Background(), simRun.Tenant, hash, int64(len(data)), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	f.contents[hash] = nil
	return hash
}

// body is the task.
func (f *simFiles) body() []byte {
	task := messages.Task{Input: messages.TextInput("go")}
	if f != nil {
		task.Files, task.Manifest = f.task.Files, f.task.Manifest
	}
	return task.Encode()
}

// tree shows all files of a manifest; what is lost is told.
func (f *simFiles) tree(hash string) string {
	m := f.manifest(hash)
	if _, ok := f.contents[hash]; hash != "" && (!ok || m == nil) {
		return "the manifest is lost"
	}
	return f.show(m, f.content)
}

// show is the text of a tree.
func (*simFiles) show(m *manifest.Manifest, content func(*manifest.File) string) string {
	if m == nil {
		return ""
	}
	var b strings.Builder
	for i := range m.Files {
		fmt.Fprintf(&b, "%s exec=%t %q; ", m.Files[i].Path, m.Files[i].Exec, content(&m.Files[i]))
	}
	fmt.Fprintf(&b, "folders %q", m.Folders)
	return b.String()
}

// wants is the tree of the files that the task brought, and the lines of calls.
func (f *simFiles) wants(lines string) string {
	m := &manifest.Manifest{}
	if f.first != nil {
		m.Files, m.Folders = f.first.Files, f.first.Folders
	} else if lines != "" {
		m.Files = []manifest.File{{Path: "book"}}
	} else {
		return ""
	}
	return f.show(m, func(file *manifest.File) string {
		if file.Path == "book" {
			return f.brought["book"] + lines
		}
		return f.brought[file.Path]
	})
}

// Without what rule 30 says of the files that a task brings, they are lost.
func TestSimulationOfFirstFilesFailsWithout(t *testing.T) {
	for _, rules := range []ablation{firstUnsaid, firstApart, unkept} {
		t.Run(string(rules), func(t *testing.T) {
			sum := simulate(t, fileSeeds, 1000, rules, func(v violations) bool { return v.otherFiles > 0 })
			t.Logf("%d with other files", sum.otherFiles)
			if sum.otherFiles == 0 {
				t.Error("nothing was violated: the simulation does not see this rule")
			}
		})
	}
}

// Each way to bring files is played, and without crashes each run has them.
func TestSimulationBringsFiles(t *testing.T) {
	for seed := fileSeeds + uint64(0); seed < fileSeeds+waysToBring; seed++ {
		w, found := trial(t, seed, allRules, true)
		if found.total() != 0 {
			t.Fatal(found.first)
		}
		saved := false
		for e := range w.log.Read(context.Background(), simRun, 0, 1) {
			saved = e.Seq == 1 && e.Head.Has(record.KindFilesSaved)
			break
		}
		if saved != (seed%waysToBring != bringsNothing) {
			t.Errorf("seed %d: its first entry has files: %t", seed, saved)
		}
	}
}
