package console_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/console"
)

// open is the console before an API that answers 418.
func open(t *testing.T) http.Handler {
	t.Helper()
	c, err := console.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(t *testing.T, h http.Handler, method, target string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) []byte {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sources are the files of the console, by their names below static.
func sources(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := fs.WalkDir(os.DirFS("static"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[name], err = os.ReadFile(path.Join("static", name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAssets(t *testing.T) {
	t.Parallel()
	h := open(t)
	types := map[string]string{".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml", ".json": "application/json"}
	for name, data := range sources(t) {
		r := get(t, h, "GET", "/console/"+name)
		if name == "index.html" {
			data = bytes.ReplaceAll(data, []byte(`="/console/`), []byte(`="`+versioned(t, h)))
		}
		if got := body(t, r); r.StatusCode != http.StatusOK || !bytes.Equal(got, data) {
			t.Errorf("%s: %d, %d bytes of %d", name, r.StatusCode, len(got), len(data))
		}
		if want := types[path.Ext(name)]; !strings.HasPrefix(r.Header.Get("Content-Type"), want) {
			t.Errorf("%s is %s", name, r.Header.Get("Content-Type"))
		}
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := r.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if policy := r.Header.Get("Content-Security-Policy"); !strings.Contains(policy, part) || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: its policy is %s", name, policy)
			}
		}
		if again := get(t, h, "GET", "/console/"+name, "If-None-Match", r.Header.Get("Etag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: %d", name, again.StatusCode)
		}
		packed := get(t, h, "GET", "/console/"+name, "Accept-Encoding", "gzip, br")
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s with gzip: %v", name, err)
		}
		if head := get(t, h, "HEAD", "/console/"+name); head.StatusCode != http.StatusOK || len(body(t, head)) != 0 {
			t.Errorf("HEAD %s: %d", name, head.StatusCode)
		}
	}
}

// versioned is how the paths begin by which the page loads its files.
func versioned(t *testing.T, h http.Handler) string {
	t.Helper()
	m := regexp.MustCompile(`src="(/console/v-[0-9a-f]{24}/)main\.js"`).FindSubmatch(body(t, get(t, h, "GET", "/")))
	if m == nil {
		t.Fatal("the page loads no main.js of a version")
	}
	return string(m[1])
}

// A browser asks for the page each time, and for what it loads once for each version.
func TestFilesOfAVersionAreKept(t *testing.T) {
	t.Parallel()
	h := open(t)
	const kept = "public, max-age=31536000, immutable"
	version := versioned(t, h)
	for target, want := range map[string]string{
		version + "main.js": kept, version + "views/runs.js": kept, version + "icon.svg": kept,
		"/": "no-cache", "/runs/1": "no-cache", "/console/main.js": "no-cache", "/console/v-0123456789abcdef01234567/main.js": "no-cache",
	} {
		if r := get(t, h, "GET", target); r.StatusCode != http.StatusOK || r.Header.Get("Cache-Control") != want {
			t.Errorf("%s: %d, %s, want %s", target, r.StatusCode, r.Header.Get("Cache-Control"), want)
		}
	}
	for _, none := range []string{version, version + "nothing.js", version + "../main.js", "/console/v-", "/console/v-main.js", version + version + "main.js"} {
		if r := get(t, h, "GET", "http://localhost"+none); r.StatusCode != http.StatusTeapot {
			t.Errorf("%s: %d", none, r.StatusCode)
		}
	}
	for name, data := range sources(t) { // else it would be loaded by two paths, and twice
		if path.Ext(name) == ".js" && !strings.HasPrefix(name, "vendor/") && regexp.MustCompile(`(from|import|src=|href=)\s*\(?"/console/`).Match(data) {
			t.Errorf("%s loads a file by a path that has no version", name)
		}
	}
}

// What is no page and no asset is the API's.
func TestTheRestIsTheAPI(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, page := range []string{"/", "/runs", "/runs/01J", "/agents/a/b", "/dead-letters"} {
		if r := get(t, h, "GET", page); r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", page, r.StatusCode, r.Header.Get("Content-Type"))
		}
	}
	for _, other := range []string{"/v1/tasks", "/openapi.json", "/run-lite", "/runsx", "/console", "/console/", "/console/nothing.js", "/console/../console.go", "/console/app", "/metrics", "//runs"} {
		if r := get(t, h, "GET", "http://localhost"+other); r.StatusCode != http.StatusTeapot {
			t.Errorf("%s: %d", other, r.StatusCode)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		if r := get(t, h, method, "/"); r.StatusCode != http.StatusTeapot {
			t.Errorf("%s /: %d", method, r.StatusCode)
		}
	}
}

// The libraries are those that vendor.json names, each with its licence.
func TestVendor(t *testing.T) {
	t.Parallel()
	all := sources(t)
	var vendored []struct {
		File    string `json:"file"`
		Package string `json:"package"`
		Version string `json:"version"`
		License string `json:"license"`
		SHA256  string `json:"sha256"`
	}
	if err := json.Unmarshal(all["vendor/vendor.json"], &vendored); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for name := range all {
		if strings.HasPrefix(name, "vendor/") && name != "vendor/vendor.json" {
			left[name] = true
		}
	}
	for _, v := range vendored {
		name := "vendor/" + v.File
		sum := sha256.Sum256(all[name])
		if hex.EncodeToString(sum[:]) != v.SHA256 || v.Version == "" || v.License == "" {
			t.Errorf("%s is not version %s of %s: run .ci/vendor", name, v.Version, v.Package)
		}
		delete(left, name)
		if licence := "vendor/LICENSE." + strings.TrimSuffix(v.File, path.Ext(v.File)); path.Ext(v.File) == ".js" {
			if len(all[licence]) == 0 {
				t.Errorf("%s has no licence", name)
			}
			delete(left, licence)
		}
	}
	for name := range left {
		t.Errorf("%s is not in vendor.json", name)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	const most = 250_000
	h, sum := open(t), 0
	for name := range sources(t) {
		if !strings.Contains(name, "LICENSE") {
			sum += len(body(t, get(t, h, "GET", "/console/"+name, "Accept-Encoding", "gzip")))
		}
	}
	if sum > most {
		t.Errorf("the console has %d bytes, compressed; it may have %d", sum, most)
	}
	t.Logf("%d bytes compressed", sum)
}

// Nothing in our files runs text, makes markup of it, or loads something from elsewhere.
func TestNothingRunsText(t *testing.T) {
	t.Parallel()
	forbidden := regexp.MustCompile(`\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\bon[a-z]+="|style="|javascript:|localStorage|sessionStorage|src="http|href="http`)
	allowed := map[string][]string{"app/text.js": {"dangerouslySetInnerHTML"}}
	for name, data := range sources(t) {
		if strings.HasPrefix(name, "vendor/") || path.Ext(name) == ".svg" {
			continue
		}
		for _, found := range forbidden.FindAllString(string(data), -1) {
			if !slices.Contains(allowed[name], found) {
				t.Errorf("%s has %s", name, found)
			}
		}
	}
	if n := bytes.Count(sources(t)["app/text.js"], []byte("dangerouslySetInnerHTML")); n != 1 {
		t.Errorf("markup is made in %d places", n)
	}
}

// What is clicked is a control, which the keyboard reaches and operates by itself.
func TestClicksAreOnControls(t *testing.T) {
	t.Parallel()
	clicked := regexp.MustCompile(`<(\$\{)?([A-Za-z]+)[^<]*?\bonClick=`)
	controls := []string{"button", "a", "input", "summary"}
	found := 0
	for name, data := range sources(t) {
		if strings.HasPrefix(name, "vendor/") || path.Ext(name) != ".js" {
			continue
		}
		for _, m := range clicked.FindAllSubmatch(data, -1) {
			if found++; len(m[1]) == 0 && !slices.Contains(controls, string(m[2])) {
				t.Errorf("%s: <%s> is clicked, which the keyboard cannot do", name, m[2])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d clicks", found)
	}
}

// Each view has a file and a path.
func TestViews(t *testing.T) {
	t.Parallel()
	all := sources(t)
	h := open(t)
	entry := regexp.MustCompile(`(?m)^  "?([a-z-]*)"?: (?:\{ name: .*?)?(?:load: )?\(\) => import\("\./(views/[a-z]+\.js)"\)`)
	found := entry.FindAllSubmatch(all["main.js"], -1)
	used := map[string]bool{}
	for _, m := range found {
		used[string(m[2])] = true
		if len(all[string(m[2])]) == 0 {
			t.Errorf("%s does not exist", m[2])
		}
		if r := get(t, h, "GET", "/"+string(m[1])); r.StatusCode != http.StatusOK {
			t.Errorf("/%s is no page: %d", m[1], r.StatusCode)
		}
	}
	if len(found) < 10 {
		t.Errorf("%d views", len(found))
	}
	for name, data := range all {
		if strings.HasPrefix(name, "views/") && bytes.Contains(data, []byte("export function View(")) && !used[name] {
			t.Errorf("%s is no view of main.js", name)
		}
	}
}
