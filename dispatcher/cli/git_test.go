package cli_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// A task is given repositories at a commit, and a branch is refused before anything is sent.
func TestSubmitWithARepository(t *testing.T) {
	f := newFleet(t)
	const url, commit = "https://git.example.com:8443/team/project.git", "0123456789abcdef0123456789abcdef01234567"
	f.run(t, "submit", "Count.", "--id", "again", "--git", url+"@"+commit, "--git", url+"@"+commit+":packages/@scope/x")
	c, done, err := f.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	want := messages.Task{ID: "again", Input: messages.TextInput("Count."), Files: []messages.TaskFile{
		{Git: &messages.Repository{URL: url, Commit: commit}}, {Git: &messages.Repository{URL: url, Commit: commit, Path: "packages/@scope/x"}},
	}}
	if _, err := c.Submit(t.Context(), want); err != nil { // is accepted for the same task alone
		t.Error(err)
	}
	const none = "--git: needs the commit after the URL: --git https://git.example.com/team/project.git@COMMIT"
	for given, want := range map[string]string{
		url:                                      none,
		"https://me@git.example.com/project.git": none,
		url + "@main":                            "--git: commit: main is a branch or a tag, which may be another commit tomorrow: give the whole hash of a commit. `git ls-remote URL main` prints it",
		url + "@0123abc":                         "--git: commit: 0123abc is a part of a hash, of which there may be several some day: give all 40 digits. `git rev-parse 0123abc` prints them",
		url + "@" + commit + ":../x":             `--git: path: "../x": is not a plain path such as notes/a.txt`,
		"https://me:s3cret@git.example.com/project.git@" + commit: "--git: url: holds a user or a password, which would be stored with the task: leave it out. " +
			"The operator gives workers a credential in LONGSHORE_GIT_CREDENTIALS",
	} {
		_, _, err := executeWith(t, f.connect, "", "submit", "x", "--git", given)
		if _, is := errors.AsType[*render.UsageError](err); !is || err.Error() != want || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}
