package messages_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
)

const someHash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"

// The files of a task are hostile until checked, and the error names the file.
func TestFilesOfATask(t *testing.T) {
	t.Parallel()
	file := func(path string) string { return fmt.Sprintf(`{"path":%q,"text":"x"}`, path) }
	for name, tc := range map[string]struct{ files, want string }{
		"text":          {`{"path":"a.txt","text":"hi"}`, ""},
		"empty":         {`{"path":"a.txt","text":""}`, ""},
		"data":          {`{"path":"bin/tool","data":"AAE=","exec":true}`, ""},
		"named":         {`{"path":"a","hash":"` + someHash + `","size":4}`, ""},
		"of no bytes":   {`{"path":"a","hash":"` + someHash + `"}`, ""},
		"beside":        {file("a") + "," + file("a.b") + "," + file("ab/c"), ""},
		"deep":          {file(strings.Repeat("d/", 31) + "f"), ""},
		"no path":       {`{"text":"x"}`, `files[0].path: "": is not a plain path such as notes/a.txt`},
		"absolute":      {file("a") + "," + file("/etc/passwd"), `files[1].path: "/etc/passwd": is not a plain path such as notes/a.txt`},
		"above":         {file("a/../../b"), `files[0].path: "a/../../b": is not a plain path such as notes/a.txt`},
		"a folder":      {file("a/"), `files[0].path: "a/": is not a plain path such as notes/a.txt`},
		"the folder":    {file("."), `files[0].path: ".": is not a plain path such as notes/a.txt`},
		"two slashes":   {file("a//b"), `files[0].path: "a//b": is not a plain path such as notes/a.txt`},
		"a line break":  {`{"path":"a\nb","text":""}`, `files[0].path: "a\nb": has control characters`},
		"turned around": {`{"path":"a\u202etxt","text":""}`, `files[0].path: "a\u202etxt": has control characters`},
		"too deep":      {file(strings.Repeat("d/", 32) + "f"), `files[0].path: "` + strings.Repeat("d/", 32) + `f": has more than 32 parts`},
		"long part":     {file(strings.Repeat("n", 256)), `files[0].path: "` + strings.Repeat("n", 128) + `… (128 more bytes)": a part is longer than 255 bytes`},
		"long":          {file(strings.Repeat("d/", 2048) + "f"), `files[0].path: "` + strings.Repeat("d/", 64) + `… (3969 more bytes)": longer than 4096 bytes`},
		"reserved":      {file("a/.longshore-tmp-x"), `files[0].path: "a/.longshore-tmp-x": names that begin with .longshore-tmp- are reserved`},
		"twice":         {file("a") + "," + file("b") + "," + file("a"), `files[2].path: "a": is given twice`},
		"file, folder":  {file("a") + "," + file("b/c/d") + "," + file("b/c"), `files[1].path: "b/c/d": is below files[2], which is a file`},
		"nothing":       {`{"path":"a"}`, `files[0].text: a: give exactly one of text, data and hash`},
		"no bytes":      {`{"path":"a","data":""}`, `files[0].data: is empty: give text "" for an empty file`},
		"two contents":  {`{"path":"a","text":"","data":"AAE="}`, `files[0].text: a: give exactly one of text, data and hash`},
		"and a hash":    {`{"path":"a","text":"x","hash":"` + someHash + `"}`, `files[0].text: a: give exactly one of text, data and hash`},
		"size of text":  {`{"path":"a","text":"x","size":1}`, `files[0].size: goes with hash alone`},
		"a short hash":  {`{"path":"a","hash":"9f86"}`, `files[0].hash: must be a SHA-256 as 64 hexadecimal digits in lower case`},
		"capitals":      {`{"path":"a","hash":"` + strings.ToUpper(someHash) + `"}`, `files[0].hash: must be a SHA-256 as 64 hexadecimal digits in lower case`},
		"less than 0":   {`{"path":"a","hash":"` + someHash + `","size":-1}`, `files[0].size: must be 0 to 1099511627776`},
		"huge":          {`{"path":"a","hash":"` + someHash + `","size":1099511627777}`, `files[0].size: must be 0 to 1099511627776`},
		"no base64":     {`{"path":"a","data":"%"}`, `files[0].data: must be a string in base64`},
		"null":          {`{"path":"a","text":null}`, `files[0].text: null is not allowed`},
		"a local name":  {`{"path":"a","from":"./a"}`, `files[0].from: unknown field`},
		"too many":      {strings.TrimSuffix(strings.Repeat(file("a")+",", 1001), ","), `files: more than 1000: upload them and give their manifest`},
		"too large": {
			file("a") + `,{"path":"b","text":"` + strings.Repeat("x", 512<<10) + `"}`,
			`files[1]: b: with it the files are larger than 524288 bytes: upload contents and give their hashes`,
		},
		"data as base64": {
			`{"path":"b","data":"` + base64.StdEncoding.EncodeToString(make([]byte, 400<<10)) + `"}`,
			`files[0]: b: with it the files are larger than 524288 bytes: upload contents and give their hashes`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantDecoded(t, `{"input":"x","files":[`+tc.files+`]}`, tc.want)
		})
	}
	wantDecoded(t, `{"input":"x","manifest":"`+someHash+`"}`, "")
	wantDecoded(t, `{"input":"x","manifest":"latest"}`, "manifest: must be a SHA-256 as 64 hexadecimal digits in lower case")
	wantDecoded(t, `{"input":"x","manifest":"`+someHash+`","files":[`+file("a")+`]}`, "manifest: give either files or manifest, not both")
	wantDecoded(t, `{"input":"x","workspace":"w","files":[`+file("a")+`]}`, "workspace: a folder that runs share is used as it is: leave out files and manifest")
	task := messages.Task{Input: messages.TextInput("x"), Files: []messages.TaskFile{{Path: "a", Text: new("\xff")}}}
	task.SetDefaults()
	wantFieldError(t, "text of no UTF-8", task.Validate())
}

// wantDecoded decodes a task, which comes back as it was.
func wantDecoded(t *testing.T, body, want string) {
	t.Helper()
	task, err := messages.DecodeTask([]byte(body))
	switch {
	case want != "" && (err == nil || err.Error() != want):
		t.Errorf("%v, want %s", err, want)
	case want != "":
	case err != nil:
		t.Error(err)
	default:
		again, err := messages.DecodeTask(task.Encode())
		if err != nil {
			t.Error(err)
		}
		noDiff(t, "the task again", task, again)
	}
}

// A file is the same whether it brings its content or names it, and whatever stands before it.
func TestFilesOfATaskByTheirContents(t *testing.T) {
	t.Parallel()
	brought := messages.Task{Files: []messages.TaskFile{{Path: "b", Text: new("test"), Exec: true}, {Path: "a", Data: []byte{0}}}}
	namedHere := messages.Task{Files: []messages.TaskFile{
		{Path: "a", Hash: manifest.HashOf([]byte{0}), Size: 1}, {Path: "b", Hash: someHash, Size: 4, Exec: true},
	}}
	want := &manifest.Manifest{Files: []manifest.File{
		{Path: "a", Size: 1, Hash: manifest.HashOf([]byte{0})}, {Path: "b", Size: 4, Hash: someHash, Exec: true},
	}}
	noDiff(t, "files that are brought", want, brought.FirstFiles())
	noDiff(t, "files that are named", want, namedHere.FirstFiles())
	if brought.Fingerprint() != namedHere.Fingerprint() {
		t.Error("the same files have two fingerprints")
	}
	for name, change := range map[string]func(*messages.TaskFile){
		"path": func(f *messages.TaskFile) { f.Path += "x" }, "text": func(f *messages.TaskFile) { f.Text = new("other") },
		"exec": func(f *messages.TaskFile) { f.Exec = false },
	} {
		other := messages.Task{Files: []messages.TaskFile{brought.Files[0], brought.Files[1]}}
		change(&other.Files[0])
		if other.Fingerprint() == brought.Fingerprint() {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
	if m := (&messages.Task{}).FirstFiles(); m != nil {
		t.Errorf("a task without files has %v", m)
	}
	if diff := brought.Files[0]; diff.Text == nil || diff.Path != "b" {
		t.Error("the task was changed")
	}
}
