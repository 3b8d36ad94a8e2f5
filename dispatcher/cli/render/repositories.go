package render

import (
	"errors"
	"regexp"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// GitHelp describes a flag whose values Repositories reads.
const GitHelp = "a git repository whose files the run's folder holds at its start: URL@COMMIT, or URL@COMMIT:FOLDER for a folder of it; may be repeated"

// Repositories returns the named repositories as a task names them. What is wrong with one is an *UsageError.
func Repositories(given []string) ([]messages.TaskFile, error) {
	var files []messages.TaskFile
	whole := regexp.MustCompile(`^(.+)@([0-9a-f]{40})(?::(.+))?$`)
	for _, g := range given {
		r := &messages.Repository{}
		if m := whole.FindStringSubmatch(g); m != nil {
			r.URL, r.Commit, r.Path = m[1], m[2], m[3]
		} else if at := strings.LastIndexByte(g, '@'); at > strings.LastIndexByte(g, '/') { // else it is that of a user
			r.URL, r.Commit = g[:at], g[at+1:]
		} else {
			return nil, Misuse(errors.New("--git: needs the commit after the URL: --git https://git.example.com/team/project.git@COMMIT"))
		}
		if err := r.Check(); err != nil {
			return nil, Misuse(errors.New("--git: " + err.Error()))
		}
		files = append(files, messages.TaskFile{Git: r})
	}
	return files, nil
}
