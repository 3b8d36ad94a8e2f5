//go:build unix

package fleet_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/worker/repository/repositorytest"
)

const repositoryScript = `
scenes:
  - match: whole
    turns: [{calls: [{name: read_file, arguments: {filePath: src/main.txt}}]}, {text: "I read ${lastToolResult}"}]
  - turns: [{calls: [{name: read_file, arguments: {filePath: main.txt}}]}, {text: "I read ${lastToolResult}"}]
`

// Runs are given a commit by a person, on a fleet elsewhere and on one in the process of the command, from a server with a certificate of a
// private CA.
func TestRepositoriesByCommand(t *testing.T) {
	t.Parallel()
	server := repositorytest.NewTLS(t)
	at := server.URL + "@" + server.Files(map[string]string{"README.md": "", "src/main.txt": "A ship came in."})
	h := &overHTTP{t: t, dir: t.TempDir(), called: new([]string)}
	hosts, ca := "LONGSHORE_GIT_HOSTS="+server.Host, "LONGSHORE_GIT_CA="+h.file("ca.pem", string(server.CA))
	script := "LONGSHORE_SCRIPT=" + h.file("script.yaml", repositoryScript)
	h.start("127.0.0.1:0", hosts, ca)
	h.http = append(h.http, "LONGSHORE_API_KEY="+h.key("*", "admin"))
	for name, env := range map[string][]string{"nats": h.nats, "http": h.http, "here": {script, hosts, ca}} {
		for text, git := range map[string]string{"whole": at, "a folder": at + ":src"} {
			if got := call(t, env, "run", text, "--git", git); got.code != 0 || got.stdout != "I read A ship came in.\n" {
				t.Errorf("%s: %s: %+v", name, text, got)
			}
		}
	}
	for name, env := range map[string][]string{"nats": h.nats, "http": h.http} {
		if got := call(t, env, "submit", "whole", "--git", at, "--id", name); got.code != 0 {
			t.Fatalf("%+v", got)
		}
		if got := call(t, env, "watch", name); got.code != 0 || !strings.Contains(got.stdout+got.stderr, "A ship came in.") {
			t.Errorf("%+v", got)
		}
		if got := call(t, env, "files", "ls", name, "--step", "0"); got.code != 0 || !containsAll(got.stdout, []string{"README.md", "src/main.txt"}) {
			t.Errorf("%+v", got)
		}
	}
	if fetches := server.Fetches(); fetches != 8 {
		t.Errorf("the commit was fetched %d times by 8 runs", fetches)
	}
	got := call(t, []string{script, hosts}, "run", "whole", "--git", at)
	if got.code != 1 || got.stdout != "" || !containsAll(got.stderr, []string{"files[0].git.url: the certificate of the server is not trusted", "LONGSHORE_GIT_CA"}) {
		t.Errorf("%+v", got)
	}
	got = call(t, []string{script, hosts, "LONGSHORE_GIT_CA=" + h.file("none.pem", "none")}, "run", "whole", "--git", at)
	if got.code == 0 || !strings.Contains(got.stderr, "LONGSHORE_GIT_CA: ") || !strings.Contains(got.stderr, "has no certificate in PEM") {
		t.Errorf("%+v", got)
	}
}
