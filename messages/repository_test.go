package messages_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
)

const someCommit = "0123456789abcdef0123456789abcdef01234567"

// A repository of a task is hostile until checked, and the error names the field. It repeats no URL that may hold a password.
func TestRepositoriesOfATask(t *testing.T) {
	t.Parallel()
	git := func(url, commit, more string) string {
		return `{"git":{"url":"` + url + `","commit":"` + commit + `"` + more + `}}`
	}
	const good = "https://git.example.com/team/project.git"
	const noURL = "files[0].git.url: must be a URL such as https://git.example.com/team/project.git"
	const secret = "files[0].git.url: holds a user or a password, which would be stored with the task: leave it out. The operator gives workers a credential in LONGSHORE_GIT_CREDENTIALS"
	const alone = "files[0].git: goes with no other field: its own path and into say which files are where"
	for name, tc := range map[string]struct{ files, want string }{
		"whole":          {git(good, someCommit, ""), ""},
		"a folder":       {git(good, someCommit, `,"path":"sub/folder","into":"src"`), ""},
		"with a port":    {git("https://git.example.com:8443/p", someCommit, ""), ""},
		"this machine":   {git("http://127.0.0.1:3000/p.git", someCommit, "") + `,{"path":"a","text":"x"}`, ""},
		"four":           {strings.Repeat(git(good, someCommit, "")+",", 3) + git(good, someCommit, ""), ""},
		"five":           {strings.Repeat(git(good, someCommit, "")+",", 4) + git(good, someCommit, ""), "files[4].git: is one too many: a task may have 4 repositories"},
		"no URL":         {git("", someCommit, ""), noURL},
		"a path":         {git("/srv/project.git", someCommit, ""), noURL},
		"no host":        {git("https:///project.git", someCommit, ""), noURL},
		"scp":            {git("git@github.com:a/b.git", someCommit, ""), noURL},
		"a file":         {git("file:///srv/project.git", someCommit, ""), noURL},
		"ssh":            {git("ssh://git.example.com/p", someCommit, ""), "files[0].git.url: must begin with https://"},
		"plain":          {git("http://git.example.com/p", someCommit, ""), "files[0].git.url: must begin with https://"},
		"plain by name":  {git("http://localhost/p", someCommit, ""), "files[0].git.url: must begin with https://"},
		"a password":     {git("https://me:s3cret@git.example.com/p", someCommit, ""), secret},
		"a token":        {git("https://s3cret@git.example.com/p", someCommit, ""), secret},
		"a query":        {git("https://git.example.com/p?token=s3cret", someCommit, ""), "files[0].git.url: must have neither ? nor #: the commit and the folder have fields of their own"},
		"a fragment":     {git("https://git.example.com/p#main", someCommit, ""), "files[0].git.url: must have neither ? nor #: the commit and the folder have fields of their own"},
		"long":           {git("https://git.example.com/"+strings.Repeat("p", 2048), someCommit, ""), "files[0].git.url: larger than 2048 bytes"},
		"no commit":      {git(good, "", ""), "files[0].git.commit: is missing: give the whole hash of a commit. `git rev-parse HEAD` prints that of a checkout"},
		"a branch":       {git(good, "main", ""), "files[0].git.commit: main is a branch or a tag, which may be another commit tomorrow: give the whole hash of a commit. `git ls-remote URL main` prints it"},
		"short":          {git(good, "0123abc", ""), "files[0].git.commit: 0123abc is a part of a hash, of which there may be several some day: give all 40 digits. `git rev-parse 0123abc` prints them"},
		"capitals":       {git(good, strings.ToUpper(someCommit), ""), "files[0].git.commit: must be a hash of 40 hexadecimal digits in lower case"},
		"SHA-256":        {git(good, someHash, ""), "files[0].git.commit: is a SHA-256, and repositories with SHA-256 cannot be fetched"},
		"from outside":   {git(good, someCommit, `,"path":"../x"`), `files[0].git.path: "../x": is not a plain path such as notes/a.txt`},
		"to the outside": {git(good, someCommit, `,"into":"/etc"`), `files[0].git.into: "/etc": is not a plain path such as notes/a.txt`},
		"and a path":     {`{"path":"a","git":{"url":"` + good + `","commit":"` + someCommit + `"}}`, alone},
		"and a text":     {`{"text":"","git":{"url":"` + good + `","commit":"` + someCommit + `"}}`, alone},
		"and exec":       {`{"exec":true,"git":{"url":"` + good + `","commit":"` + someCommit + `"}}`, alone},
		"a field":        {git(good, someCommit, `,"branch":"main"`), "files[0].git.branch: unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantDecoded(t, `{"input":"x","files":[`+tc.files+`]}`, tc.want)
		})
	}
	wantDecoded(t, `{"input":"x","workspace":"w","files":[`+git(good, someCommit, "")+`]}`, "workspace: a folder that runs share is used as it is: leave out files and manifest")
}

// A repository is part of what a task is, and none of the files that are stored with it.
func TestRepositoryIsPartOfItsTask(t *testing.T) {
	t.Parallel()
	task := func(commit string) *messages.Task {
		return &messages.Task{Files: []messages.TaskFile{
			{Path: "a", Text: new("x")}, {Git: &messages.Repository{URL: "https://git.example.com/p", Commit: commit}},
		}}
	}
	one := task(someCommit)
	if one.Fingerprint() != task(someCommit).Fingerprint() || one.Fingerprint() == task(strings.Repeat("0", 40)).Fingerprint() {
		t.Error("the fingerprint does not tell commits apart")
	}
	if m := one.FirstFiles(); len(m.Files) != 1 || m.Files[0].Path != "a" {
		t.Errorf("the files are %+v", m.Files)
	}
	if !one.FetchesFiles() || !one.HasFiles() || one.NamesFiles() {
		t.Error("a task with a repository is taken for another one")
	}
	git := *one.Files[1].Git
	one.NameFiles()
	if diff := cmp.Diff(&git, one.Files[0].Git); diff != "" {
		t.Error(diff)
	}
}
