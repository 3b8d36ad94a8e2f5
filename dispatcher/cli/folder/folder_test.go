package folder_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/folder"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// write makes a folder with files.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// holds compares the files of a folder, with links as where they lead.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type()&os.ModeNamedPipe != 0 {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.Type()&os.ModeSymlink != 0 {
			got[name], err = os.Readlink(path)
			return err
		}
		content, err := os.ReadFile(path)
		got[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func scan(t *testing.T, dir string) *folder.Folder {
	t.Helper()
	f, err := folder.Scan(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestScan(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"x": "outside"})
	write(t, dir, map[string]string{
		"a.txt": "a", "sub/b.txt": "b", "sub/c.log": "c", "build/out": "x", "keep.log": "k", ".git/config": "x", ".env": "KEY=1", ".env.example": "KEY=",
		"deploy/id_rsa": "key", "cert.pem": "x", "listed.pem": "x", ".gitignore": "build/\n*.log\n", ".longshoreignore": "!keep.log\n!/listed.pem\nsub/private/\n",
		"sub/private/x": "x", "sub/.gitignore": "!c.log\n", "sub/.git/x": "x",
	})
	if err := errors.Join(os.Symlink(outside, filepath.Join(dir, "link")), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Chmod(filepath.Join(dir, "a.txt"), 0o700)); err != nil {
		t.Fatal(err)
	}
	f := scan(t, dir)
	var names []string
	for _, file := range f.Files.Files {
		names = append(names, file.Path)
		if file.Exec != (file.Path == "a.txt") {
			t.Errorf("%+v", file)
		}
	}
	if diff := cmp.Diff([]string{".env.example", ".gitignore", ".longshoreignore", "a.txt", "keep.log", "listed.pem", "sub/.gitignore", "sub/b.txt", "sub/c.log"}, names); diff != "" {
		t.Error(diff)
	}
	left := map[string]string{}
	for _, l := range f.LeftOut {
		left[l.Path] = l.Why
	}
	if diff := cmp.Diff(map[string]string{
		".git": folder.WhyIgnored, "build": folder.WhyIgnored, "sub/private": folder.WhyIgnored, "sub/.git": folder.WhyIgnored, ".env": folder.WhySecret,
		"deploy/id_rsa": folder.WhySecret, "cert.pem": folder.WhySecret, "link": folder.WhyLink, "pipe": folder.WhySpecial,
	}, left); diff != "" {
		t.Error(diff)
	}
}

// A list that includes secrets may be that of someone else's repository: they are named before anything is sent.
func TestSecretsThatAreUploadedAreNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".longshoreignore": "!*\n", ".ENV": "KEY=1", "sub/.ssh/config": "x", "sub/.git/config": "x", "a.txt": "a"})
	away, err := dispatcher.NewHTTP("http://127.0.0.1:1", "")
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	var said bytes.Buffer
	const listed = ", which looks like a secret: a .longshoreignore lists it\n"
	if _, err := scan(t, dir).Send(t.Context(), away, "", &said, false); err == nil || said.String() != "Not uploaded: 1 name that the rules of .longshoreignore and .gitignore leave out\n"+
		"Uploading .ENV"+listed+"Uploading sub/.ssh/config"+listed+"Uploading 4 files, 10 bytes.\n" {
		t.Errorf("%v, said %s", err, said.String())
	}
}

// Rules hold behind a line of any length, and names of secrets are known in any case of letters.
func TestScanWithLongRules(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		".gitignore": strings.Repeat("x", 100_000) + "\nprivate/\r\nlast", "private/x": "x", "last": "x", "a.txt": "a", ".ENV": "KEY=1", "Cert.PEM": "x",
		".envrc": "export KEY=1", "longshore-data.keyset": "{}", "infra/prod.tfstate": "{}",
	})
	f := scan(t, dir)
	var names []string
	for _, file := range f.Files.Files {
		names = append(names, file.Path)
	}
	if diff := cmp.Diff([]string{".gitignore", "a.txt"}, names); diff != "" {
		t.Error(diff)
	}
}

// A folder goes to a fleet and its changes come back, but for what changed here meanwhile, over NATS and over HTTP.
func TestThereAndBack(t *testing.T) {
	var script strings.Builder
	script.WriteString("scenes:\n  - match: \"\"\n    turns:\n")
	for _, f := range [][2]string{{"a.txt", "new a"}, {"deep/down/new.txt", "new"}, {"mine.txt", "of the run"}, {"same.txt", "s"}, {".git/hooks/post-commit", "evil"}, {".env", "evil"}} {
		args, err := json.Marshal(map[string]string{"filePath": f[0], "content": f[1]})
		if err != nil {
			t.Fatal(err)
		}
		script.WriteString("      - calls: [{name: write_file, arguments: " + string(args) + "}]\n")
	}
	script.WriteString("      - text: done\n")
	play, err := scripted.Parse([]byte(script.String()))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: scripted.New(play)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	over, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	web, err := dispatcher.NewHTTP("http://"+dev.API, "")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	for name, client := range map[string]*dispatcher.Client{"nats": over, "http": web} {
		t.Run(name, func(t *testing.T) {
			dir, ctx := t.TempDir(), t.Context()
			write(t, dir, map[string]string{"a.txt": "a", "mine.txt": "m", "same.txt": "s", ".env": "KEY=1"})
			f := scan(t, dir)
			var said bytes.Buffer
			hash, err := f.Send(ctx, client, "", &said, false)
			if err != nil || !strings.Contains(said.String(), "Not uploaded: .env: looks like a secret") || !strings.Contains(said.String(), "Uploading 3 files, 3 bytes.") {
				t.Fatalf("%v, said %s", err, said.String())
			}
			run := dispatcher.Run(name)
			if _, err := client.Submit(ctx, messages.Task{ID: run.Run, Input: messages.TextInput("write"), Manifest: hash}); err != nil {
				t.Fatal(err)
			}
			if r, err := client.Wait(ctx, run); err != nil || !r.Success {
				t.Fatalf("%+v, %v", r, err)
			}
			write(t, dir, map[string]string{"mine.txt": "changed here"})
			back, err := f.Compare(ctx, client, run)
			if err != nil {
				t.Fatal(err)
			}
			want := "  added .env (4 bytes): not written: looks like a secret\n  added .git/hooks/post-commit (4 bytes): not written: ignored\n" +
				"  added deep/down/new.txt (3 bytes)\n  changed a.txt (5 bytes)\n" +
				"  changed mine.txt (10 bytes): not written without --overwrite: it was changed here meanwhile\n"
			if diff := cmp.Diff(want, back.Text(false)); diff != "" {
				t.Error(diff)
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if err := back.Apply(ended, client, true); err == nil || !strings.HasSuffix(err.Error(), ": the folder is as it was") {
				t.Errorf("it writes although it was interrupted, or says nothing of the folder: %v", err)
			}
			holds(t, dir, map[string]string{"a.txt": "a", "mine.txt": "changed here", "same.txt": "s", ".env": "KEY=1"})
			if err := back.Apply(ctx, client, false); err != nil {
				t.Fatal(err)
			}
			holds(t, dir, map[string]string{"a.txt": "new a", "mine.txt": "changed here", "same.txt": "s", ".env": "KEY=1", "deep/down/new.txt": "new"})
			if info, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("a file that only its owner could read now has %v, %v", info.Mode(), err)
			}
			if back, err = f.Compare(ctx, client, run); err != nil || back.Count(false) != 0 || back.Count(true) != 1 {
				t.Errorf("after it was written: %s%v", back.Text(false), err)
			}
			if err := back.Apply(ctx, client, true); err != nil {
				t.Fatal(err)
			}
			holds(t, dir, map[string]string{"a.txt": "new a", "mine.txt": "of the run", "same.txt": "s", ".env": "KEY=1", "deep/down/new.txt": "new"})
		})
	}
}

// hostile is a fleet that lists what it likes, and whose files all have the content "evil".
func hostile(t *testing.T, files ...manifest.File) *dispatcher.Client {
	t.Helper()
	list := control.FileList{Manifest: manifest.HashOf([]byte("list"))}
	for _, f := range files {
		list.Files = append(list.Files, messages.SavedFile{Name: f.Path, Size: f.Size, Hash: f.Hash})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/files") {
			_ = json.NewEncoder(w).Encode(list)
			return
		}
		w.Header().Set("ETag", strconv.Quote(manifest.HashOf([]byte("evil"))))
		w.Header().Set("Content-Range", "bytes 0-3/4")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write([]byte("evil"))
	}))
	t.Cleanup(server.Close)
	client, err := dispatcher.NewHTTP(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func evil(path string) manifest.File {
	return manifest.File{Path: path, Size: 4, Hash: manifest.HashOf([]byte("evil"))}
}

func TestHostileFleets(t *testing.T) {
	for _, path := range []string{"../x", "/x", "a/../../x", "a//b", "", ".", "a\x00b", "a\nb", "a/./b"} {
		f := scan(t, t.TempDir())
		if back, err := f.Compare(t.Context(), hostile(t, evil(path)), dispatcher.Run("x")); err == nil {
			t.Errorf("%q is accepted: %s", path, back.Text(false))
		}
	}
	dir, outside := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{"file": "f", "inside/x": "x", "inside/.git/hooks/y": "y"})
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(dir, "out")), os.Symlink("inside", filepath.Join(dir, "in")), os.Symlink(filepath.Join(outside, "made"), filepath.Join(dir, "dangling")),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	f := scan(t, dir)
	kept := append([]manifest.File{}, f.Files.Files...)
	for _, path := range []string{
		"out/x", "in/x", "in/new", "dangling", "pipe", "file/x", "out", ".git/hooks/pre-commit", "sub/.GIT/config", "sub/.git./config", "sub/.g\u200cit/config",
		".env", ".longshore-x/new-0", "inside/.git/hooks/y",
	} {
		if path == "file/x" { // in place of the file
			kept = append([]manifest.File{}, f.Files.Files[1:]...)
		}
		client := hostile(t, sorted(append([]manifest.File{evil(path)}, kept...))...)
		back, err := f.Compare(t.Context(), client, dispatcher.Run("x"))
		if err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		refused := false
		for _, c := range back.Changes {
			refused = refused || c.Path == path && c.Refused != ""
		}
		if !refused {
			t.Errorf("%q is not refused: %s", path, back.Text(false))
		}
		kept = append([]manifest.File{}, f.Files.Files...)
	}
	holds(t, outside, map[string]string{})

	// A link that appears after the comparison, and a content that is not what the list says: nothing is written.
	client := hostile(t, sorted(append([]manifest.File{evil("fresh/a"), evil("b")}, f.Files.Files...))...)
	back, err := f.Compare(t.Context(), client, dispatcher.Run("x"))
	if err != nil || back.Count(false) != 2 {
		t.Fatalf("%v", err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "fresh")); err != nil {
		t.Fatal(err)
	}
	if err := back.Apply(t.Context(), client, true); err == nil {
		t.Error("it is written through a link")
	}
	lie := manifest.File{Path: "lie", Size: 4, Hash: manifest.HashOf([]byte("good"))}
	client = hostile(t, sorted(append([]manifest.File{evil("b"), lie}, f.Files.Files...))...)
	if back, err = f.Compare(t.Context(), client, dispatcher.Run("x")); err != nil {
		t.Fatal(err)
	}
	if err := back.Apply(t.Context(), client, true); err == nil {
		t.Error("another content is written")
	}
	holds(t, outside, map[string]string{})
	holds(t, dir, map[string]string{
		"file": "f", "inside/x": "x", "inside/.git/hooks/y": "y", "out": outside, "in": "inside", "dangling": filepath.Join(outside, "made"), "fresh": outside,
	})
}

// A folder that git takes for a repository, without a .git, can have it run programs: nothing is written there, whatever part of it was there
// before.
func TestRepositoriesOfHostileFleets(t *testing.T) {
	for name, tc := range map[string]struct {
		had, come []string
		refused   int
	}{
		"all of it":         {nil, []string{"v/HEAD", "v/config", "v/objects/k", "v/refs/k", "b.txt"}, 4},
		"elsewhere":         {nil, []string{"v/commondir", "v/Head", "w/config", "w/objects/k"}, 2},
		"the settings":      {[]string{"x/v/HEAD", "x/v/objects/k"}, []string{"x/v/config"}, 1},
		"the last part":     {[]string{"v/config", "v/objects/k", "v/refs/k"}, []string{"v/HEAD"}, 1},
		"not uploaded":      {[]string{".gitignore", "v/objects/k"}, []string{"v/HEAD", "v/config", "v/refs/k"}, 3},
		"at the top":        {nil, []string{"HEAD", "objects/k", "config", "src/a.go"}, 4},
		"names alike":       {nil, []string{"v/HEAD.md", "v/objects.go", "objects/x", "v/config", "HEAD/x"}, 0},
		"objects elsewhere": {nil, []string{"v/HEAD", "w/objects/k"}, 0},
	} {
		dir, had, come := t.TempDir(), map[string]string{}, []manifest.File{}
		for _, path := range tc.had {
			had[path] = "objects/"
		}
		write(t, dir, had)
		f := scan(t, dir)
		for _, path := range tc.come {
			come = append(come, evil(path))
		}
		back, err := f.Compare(t.Context(), hostile(t, sorted(append(come, f.Files.Files...))...), dispatcher.Run("x"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if refused := len(back.Changes) - back.Count(true); refused != tc.refused {
			t.Errorf("%s: %d are refused, want %d:\n%s", name, refused, tc.refused, back.Text(true))
		}
	}
}

func sorted(files []manifest.File) []manifest.File {
	for i := range files {
		for j := i; j > 0 && files[j].Path < files[j-1].Path; j-- {
			files[j], files[j-1] = files[j-1], files[j]
		}
	}
	return files
}
