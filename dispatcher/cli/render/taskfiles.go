package render

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
)

// WithHelp describes a flag whose values With reads.
const WithHelp = "file that the run starts with in its folder: PATH, or NAME=PATH for another name there; may be repeated"

// FirstFiles are the files of a task that the values of both flags name.
func FirstFiles(with, git []string) ([]messages.TaskFile, error) {
	files, err := With(with)
	if err != nil {
		return nil, err
	}
	fetched, err := Repositories(git)
	return append(files, fetched...), err
}

// With returns the named files as a task brings them. What is wrong with one is an *UsageError.
func With(given []string) ([]messages.TaskFile, error) {
	var files []messages.TaskFile
	for _, g := range given {
		name, path, ok := strings.Cut(g, "=")
		if !ok {
			name, path = filepath.Base(g), g
		}
		f, err := taskFile(name, path)
		if err != nil {
			return nil, Misuse(fmt.Errorf("--with: %w", err))
		}
		files = append(files, f)
	}
	return files, nil
}

// taskFile reads a file that a task brings: as text if it is one.
func taskFile(name, path string) (messages.TaskFile, error) {
	f := messages.TaskFile{Path: name}
	data, err := document.Read(path, messages.MaxTaskFileText)
	if err != nil {
		return f, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return f, fmt.Errorf("read %s: %w", path, err)
	}
	f.Exec = info.Mode()&0o100 != 0
	if utf8.Valid(data) {
		f.Text = new(string(data))
	} else {
		f.Data = data
	}
	return f, nil
}

// ReadTask reads a file with a task as JSON, or the standard input for "-". A file of the task that says from instead of a content is
// read from there, relative to the folder of the file. What is wrong with a file is an *UsageError.
func ReadTask(cmd *cobra.Command, name string) ([]byte, error) {
	data, err := ReadFile(cmd, name, MaxTask)
	if err != nil {
		return nil, err
	}
	dir := "."
	if name != FromInput {
		dir = filepath.Dir(name)
	}
	data, err = fromFiles(data, dir)
	return data, Misuse(err)
}

// filesOf are the fields of a task and of its files; false: it has none, or is no task.
func filesOf(data []byte) (task map[string]json.RawMessage, files []map[string]json.RawMessage, ok bool) {
	var whole json.RawMessage
	if strict.Decode(data, &whole) != nil || json.Unmarshal(whole, &task) != nil {
		return nil, nil, false
	}
	ok = json.Unmarshal(task["files"], &files) == nil
	return task, files, ok
}

// fromFiles puts contents in place of the names of files here. What is no task stays as it is: its decoder says what is wrong.
func fromFiles(data []byte, dir string) ([]byte, error) {
	task, files, ok := filesOf(data)
	if !ok {
		return data, nil
	}
	changed := false
	for i, file := range files {
		var path, from string
		if json.Unmarshal(file["from"], &from) != nil {
			continue
		}
		if file["path"] != nil && json.Unmarshal(file["path"], &path) != nil {
			continue
		}
		if file["text"] != nil || file["data"] != nil || file["hash"] != nil {
			return nil, fmt.Errorf("files[%d].from: give exactly one of from, text, data and hash", i)
		}
		if path == "" {
			path = filepath.Base(from)
		}
		if !filepath.IsAbs(from) {
			from = filepath.Join(dir, from)
		}
		f, err := taskFile(path, from)
		if err != nil {
			return nil, fmt.Errorf("files[%d].from: %w", i, err)
		}
		content, err := json.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("files[%d].from: %w", i, err)
		}
		said := file["exec"]
		delete(file, "from")
		if err := json.Unmarshal(content, &file); err != nil { // beside what else the task says
			return nil, fmt.Errorf("files[%d].from: %w", i, err)
		}
		if said != nil {
			file["exec"] = said
		}
		changed = true
	}
	if !changed {
		return data, nil
	}
	var err error
	if task["files"], err = json.Marshal(files); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	return json.Marshal(task)
}
