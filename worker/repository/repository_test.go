package repository_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/firstfiles"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/worker/repository"
	"github.com/longshore-run/longshore/worker/repository/repositorytest"
)

var (
	run    = messages.Ref{Tenant: "acme", Run: "r1"}
	limits = firstfiles.Limits{Files: 1000, Total: 1 << 20}
)

// client may call a host.
func client(t *testing.T, host string, change ...func(*repository.Config)) *repository.Client {
	t.Helper()
	cfg := repository.Config{Hosts: []string{host}, Dir: t.TempDir(), Version: "test"}
	for _, f := range change {
		f(&cfg)
	}
	c, err := repository.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a spool has no name
		if left, err := os.ReadDir(cfg.Dir); err != nil || len(left) > 0 {
			t.Errorf("%d files are left: %v", len(left), err)
		}
	})
	return c
}

// fetched is what a fetch hands on.
type fetched struct {
	files map[string]string
	exec  []string
	*firstfiles.Tree
}

func fetch(t *testing.T, c *repository.Client, from messages.Repository) (fetched, error) {
	t.Helper()
	return fetchWithin(t, c, from, limits)
}

func fetchWithin(t *testing.T, c *repository.Client, from messages.Repository, limits firstfiles.Limits) (fetched, error) {
	t.Helper()
	got := fetched{files: map[string]string{}}
	if err := from.Check(); err != nil {
		t.Fatal(err)
	}
	err := c.Fetch(t.Context(), run, &from, limits, func(tree *firstfiles.Tree) error {
		got.Tree = tree
		for _, f := range tree.Files {
			content, err := io.ReadAll(f.Content)
			if err != nil {
				return err
			}
			if got.files[f.Path] = string(content); f.Exec {
				got.exec = append(got.exec, f.Path)
			}
		}
		return nil
	})
	return got, err
}

// refused is a fetch that fails because of what the task says; passes one that may succeed later.
func refused(t *testing.T, c *repository.Client, from messages.Repository, field, reason string) {
	t.Helper()
	got, err := fetch(t, c, from)
	wrong, ok := errors.AsType[*messages.FieldError](err)
	if !ok || wrong.Field != field || !strings.Contains(wrong.Reason, reason) || got.Tree != nil {
		t.Errorf("the error is %v, want %s: …%s…", err, field, reason)
	}
}

func passes(t *testing.T, c *repository.Client, from messages.Repository, reason string) {
	t.Helper()
	got, err := fetch(t, c, from)
	passing, ok := errors.AsType[*firstfiles.FetchError](err)
	if !ok || !strings.Contains(passing.Reason, reason) || got.Tree != nil {
		t.Errorf("the error is %v, want one that may pass: …%s…", err, reason)
	}
}

var project = map[string]string{"README.md": "# Project\n", "src/main.go": "package main\n", "src/deep/a.txt": "", "docs/b.md": "b"}

func TestFetch(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	commit := s.Files(project)
	c := client(t, s.Host)
	got, err := fetch(t, c, messages.Repository{URL: s.URL, Commit: commit})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(project, got.files); diff != "" {
		t.Error(diff)
	}
	got, err = fetch(t, c, messages.Repository{URL: s.URL, Commit: commit, Path: "src/deep"})
	if diff := cmp.Diff(map[string]string{"a.txt": ""}, got.files); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if s.Fetches() != 2 || s.Requests() != 4 {
		t.Errorf("%d packs in %d requests", s.Fetches(), s.Requests())
	}
}

// A server with a certificate of a private CA is called once that is named, and no attempt is made again without.
func TestFetchFromAPrivateCA(t *testing.T) {
	t.Parallel()
	s := repositorytest.NewTLS(t)
	from := messages.Repository{URL: s.URL, Commit: s.Files(project)}
	refused(t, client(t, s.Host), from, "url", "the certificate of the server is not trusted: \"x509: certificate signed by unknown authority\". For a CA of your own the operator names its certificate in LONGSHORE_GIT_CA")
	got, err := fetch(t, client(t, s.Host, func(c *repository.Config) { c.CA = s.CA }), from)
	if diff := cmp.Diff(project, got.files); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, err := repository.New(repository.Config{Hosts: []string{s.Host}, CA: []byte("none")}); err == nil {
		t.Error("what is no certificate was taken")
	}
}

// What a run cannot have is left out and counted; pointers of Git LFS stay what they are.
func TestKindsOfFiles(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	blob := s.Blob("#!/bin/sh\n")
	commit := s.Commit(s.Tree(
		repositorytest.Entry{Mode: "100755", Name: "run.sh", ID: blob},
		repositorytest.Entry{Mode: "100664", Name: "old", ID: blob},
		repositorytest.Entry{Mode: "120000", Name: "link", ID: s.Blob("/etc/passwd")},
		repositorytest.Entry{Mode: "160000", Name: "module", ID: strings.Repeat("1", 40)},
		repositorytest.Entry{Mode: "100644", Name: "a\nb", ID: blob},
		repositorytest.Entry{Mode: "100644", Name: ".longshore-tmp-1", ID: blob},
		repositorytest.Entry{Mode: "100644", Name: "large.bin", ID: s.Blob("version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 5\n")},
	))
	got, err := fetch(t, client(t, s.Host), messages.Repository{URL: s.URL, Commit: commit})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.files) != 3 || got.LeftOut != 4 || got.Pointers != 1 || !cmp.Equal(got.exec, []string{"run.sh"}) {
		t.Errorf("%v, executable %v, %d left out, %d pointers", got.files, got.exec, got.LeftOut, got.Pointers)
	}
}

// What the task says is wrong in a way that no other attempt mends.
func TestWrongRepositories(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	commit := s.Files(project)
	c := client(t, s.Host)
	at := messages.Repository{URL: s.URL, Commit: commit}
	with := func(change func(*messages.Repository)) messages.Repository {
		r := at
		change(&r)
		return r
	}
	refused(t, client(t, ""), at, "url", "repositories are off: the operator lists the hosts that may be called in LONGSHORE_GIT_HOSTS")
	refused(t, client(t, "github.com"), at, "url", "the host "+s.Host+" is not one that the operator listed in LONGSHORE_GIT_HOSTS")
	refused(t, c, with(func(r *messages.Repository) { r.Commit = strings.Repeat("a", 40) }), "commit", `the server does not give away a commit aaaa`)
	refused(t, c, with(func(r *messages.Repository) { r.Commit = s.Tag(commit) }), "commit", "is no commit but a tag: give the hash of a commit. `git rev-parse ")
	refused(t, c, with(func(r *messages.Repository) { r.Path = "src/none" }), "path", "src/none is no folder of the commit")
	refused(t, c, with(func(r *messages.Repository) { r.Path = "README.md" }), "path", "README.md is no folder of the commit")
	refused(t, c, with(func(r *messages.Repository) { r.URL = "http://" + s.Host + "/none.git" }), "url", "the server answers 404: there is no such repository")
	if s.Fetches() != 3 { // of the tag, and of two folders
		t.Errorf("%d packs were sent", s.Fetches())
	}
}

// A name that leads to this machine is not called, though it is listed.
func TestAddressesAreGuarded(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	commit := s.Files(project)
	_, port, _ := strings.Cut(s.Host, ":")
	c := client(t, "localhost")
	refused(t, c, messages.Repository{URL: "https://localhost:" + port + repositorytest.Path, Commit: commit}, "url", "resolves to an address that is not public")
	if s.Requests() != 0 {
		t.Errorf("%d requests were made", s.Requests())
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	other := repositorytest.New(t)
	s := repositorytest.New(t)
	commit, to := s.Files(project), ""
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/moved") {
			return false
		}
		http.Redirect(w, r, to, http.StatusMovedPermanently)
		return true
	})
	c := client(t, "127.0.0.1")
	moved := messages.Repository{URL: "http://" + s.Host + "/moved", Commit: commit}
	to = repositorytest.Path + "/info/refs?service=git-upload-pack"
	if got, err := fetch(t, c, moved); err != nil || len(got.files) != len(project) {
		t.Errorf("on the same host: %v", err)
	}
	to = other.URL + "/info/refs?service=git-upload-pack"
	refused(t, c, moved, "url", "the server redirects to http://"+other.Host+", and another host is not followed")
	to = "/login"
	refused(t, c, moved, "url", "redirects to a page that is not a git repository")
	to = "/moved/info/refs?service=git-upload-pack"
	refused(t, c, moved, "url", "redirects more than 3 times")
	if other.Requests() != 0 {
		t.Errorf("the other host was called %d times", other.Requests())
	}
}

// A server that fails may recover.
func TestServersThatFail(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	at := messages.Repository{URL: s.URL, Commit: s.Files(project)}
	quick := func(cfg *repository.Config) { cfg.Idle = 300 * time.Millisecond }
	status := 0
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		return true
	})
	for _, status = range []int{429, 500, 502, 503} {
		passes(t, client(t, s.Host), at, "the server answers ")
	}
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	passes(t, client(t, s.Host, quick), at, "no response: ")
	s.Before(func(w http.ResponseWriter, r *http.Request) bool { // it begins, and is silent then
		if r.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(w, repositorytest.Line("packfile\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	})
	passes(t, client(t, s.Host, quick), at, "the server was silent for 300ms")
	s.Before(func(w http.ResponseWriter, r *http.Request) bool { // it says something from time to time, without end
		if r.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(w, repositorytest.Line("packfile\n"))
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.Context().Done():
				return true
			case <-tick.C:
				_, _ = io.WriteString(w, repositorytest.Line("\x02still counting\n"))
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
	passes(t, client(t, s.Host, func(cfg *repository.Config) { cfg.Wait = 500 * time.Millisecond }), at, "could not be fetched within 500ms")
	s.Before(func(w http.ResponseWriter, r *http.Request) bool { // it ends too early
		if r.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(w, repositorytest.Line("packfile\n")+repositorytest.Line("\x01PACK\x00\x00\x00\x02\x00\x00\x00\x01"))
		return true
	})
	passes(t, client(t, s.Host), at, "the server ended before all was sent")
}

// A credential goes to its hosts, for its tenant, and into no error.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	at := messages.Repository{URL: s.URL, Commit: s.Files(project)}
	const secret = "tok-s3cret"
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		switch {
		case password == secret && user == "x-access-token":
			return false
		case password == "": // asked without one
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, repositorytest.Line("ERR no access with "+r.Header.Get("Authorization")+" "+password))
		}
		return true
	})
	given := func(value, host string, of repository.Credential) *repository.Client {
		store, err := credential.New(map[string]credential.Config{"git": {Env: "TOKEN", Hosts: []string{host}}},
			func(credential.Config) (string, error) { return value, nil })
		if err != nil {
			t.Fatal(err)
		}
		return client(t, s.Host, func(cfg *repository.Config) { cfg.Store, cfg.Credentials = store, []repository.Credential{of} })
	}
	everyone := repository.Credential{Name: "git"}
	for _, c := range []*repository.Client{given(secret, s.Host, everyone), given(secret, s.Host, repository.Credential{Tenant: "acme", Name: "git"})} {
		if _, err := fetch(t, c, at); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []*repository.Client{
		client(t, s.Host), given(secret, "git.example.com", everyone), given(secret, s.Host, repository.Credential{Tenant: "other", Name: "git"}),
	} {
		refused(t, c, at, "url", "the server answers 401: there is no such repository, or the worker has no credential for it")
	}
	_, err := fetch(t, given("other-s3cret", s.Host, everyone), at)
	if wrong, ok := errors.AsType[*messages.FieldError](err); !ok || wrong.Reason != "the server refuses" {
		t.Errorf("the error is %v", err)
	}
	if _, err := repository.New(repository.Config{Credentials: []repository.Credential{everyone}}); err == nil {
		t.Error("a credential that there is not is accepted")
	}
}
