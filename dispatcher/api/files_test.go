package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// large is the content of a file that takes several parts. It has nothing that looks like personal data, which would take long to judge.
var large = strings.Repeat("The tide comes in. \n", 900_000/20)

// openFiles is a fleet whose run "files" has written three files in as many steps, and has changed one of them in a fourth.
func openFiles(t *testing.T) *hall {
	t.Helper()
	var script strings.Builder
	script.WriteString("scenes:\n  - match: hi\n    turns: [{text: hello}]\n  - match: \"\"\n    turns:\n")
	for _, f := range [][2]string{{"notes/ä b.txt", "one"}, {"page.html", "<script>alert(1)</script>"}, {"z.bin", large}, {"notes/ä b.txt", "two!"}} {
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
	h := openWith(t, scripted.New(play))
	var sub struct{ Status messages.Status }
	if h.do("POST", "/v1/tasks?wait=60s", `{"id":"files","input":"write"}`, 200, &sub); sub.Status != messages.StatusCompleted {
		t.Fatalf("the run is %s", sub.Status)
	}
	return h
}

func saved(name, content string) messages.SavedFile {
	return messages.SavedFile{Name: name, Size: int64(len(content)), Type: messages.MediaType(name), Hash: manifest.HashOf([]byte(content))}
}

// get asks for a file and returns the answer with its body.
func (h *hall) get(method string, query url.Values, want int, headers ...string) (http.Header, string) {
	h.t.Helper()
	resp := h.send(method, "/v1/tasks/files/file?"+query.Encode(), "", headers...)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		h.t.Fatalf("%v: %s, want %d: %v, %.200s", query, resp.Status, want, err, data)
	}
	return resp.Header, string(data)
}

// Files are listed, read over HTTP, and read by a client: of one run, for it costs seconds with the race detector.
func TestFilesOfARun(t *testing.T) {
	h := openFiles(t)
	listedFiles(t, h)
	fileOverHTTP(t, h)
	filesByTheClient(t, h)
	filesOfAWorkspace(t, h)
}

func listedFiles(t *testing.T, h *hall) {
	t.Helper()
	var last, first, none control.FileList
	h.do("GET", "/v1/tasks/files/files", "", 200, &last)
	want := []messages.SavedFile{saved("notes/ä b.txt", "two!"), saved("page.html", "<script>alert(1)</script>"), saved("z.bin", large)}
	if diff := cmp.Diff(want, last.Files); diff != "" || last.Step != 4 || last.Count != 3 || last.Next != "" {
		t.Errorf("%s %+v", diff, last)
	}
	h.do("GET", "/v1/tasks/files/files?step=1", "", 200, &first)
	if diff := cmp.Diff([]messages.SavedFile{saved("notes/ä b.txt", "one")}, first.Files); diff != "" || first.Step != 1 {
		t.Errorf("%s %+v", diff, first)
	}
	if h.do("GET", "/v1/tasks/files/files?step=0", "", 200, &none); len(none.Files) != 0 || none.Manifest != "" {
		t.Errorf("before the first step: %+v", none)
	}
	var page control.FileList
	var names []string
	for after := ""; ; after = "&after=" + url.QueryEscape(page.Next) {
		page = control.FileList{}
		h.do("GET", "/v1/tasks/files/files?limit=2&manifest="+last.Manifest+after, "", 200, &page)
		for _, f := range page.Files {
			names = append(names, f.Name)
		}
		if page.Next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"notes/ä b.txt", "page.html", "z.bin"}, names); diff != "" {
		t.Error(diff)
	}

	var r messages.AgentResult
	h.do("GET", "/v1/tasks/files/result", "", 200, &r)
	files := messages.ResultFiles{Step: 4, Manifest: last.Manifest, Count: 3, Bytes: last.Bytes, List: want}
	if diff := cmp.Diff(&files, r.Files); diff != "" {
		t.Error(diff)
	}
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files.List = nil
	for e, err := range client.Watch(t.Context(), dispatcher.Run("files")) {
		if err != nil {
			t.Fatal(err)
		}
		var end messages.RunFinished
		if e.Name() != messages.EventRunFinished {
			continue
		}
		if err := json.Unmarshal(e.Data, &end); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&files, end.Result.Files); diff != "" {
			t.Error(diff)
		}
	}
	h.do("POST", "/v1/tasks?wait=60s", `{"id":"quiet","input":"hi"}`, 200, nil)
	if h.do("GET", "/v1/tasks/quiet/files", "", 200, &none); len(none.Files) != 0 {
		t.Errorf("a run without files: %+v", none)
	}
}

func fileOverHTTP(t *testing.T, h *hall) {
	t.Helper()
	var first control.FileList
	h.do("GET", "/v1/tasks/files/files?step=1", "", 200, &first)
	named := func(name string, more ...string) url.Values {
		q := url.Values{"name": {name}}
		for i := 0; i < len(more); i += 2 {
			q.Set(more[i], more[i+1])
		}
		return q
	}
	head, body := h.get("GET", named("notes/ä b.txt"), 200)
	etag := head.Get("ETag")
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Content-Length": "4", "Accept-Ranges": "bytes",
		"Content-Disposition": "attachment; filename*=utf-8''%C3%A4%20b.txt", "Etag": `"` + manifest.HashOf([]byte("two!")) + `"`,
		"Content-Security-Policy": "default-src 'none'; sandbox",
	} {
		if head.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, head.Get(name), want)
		}
	}
	if body != "two!" {
		t.Errorf("the file is %q", body)
	}
	for name, q := range map[string]url.Values{"of a step": named("notes/ä b.txt", "step", "3"), "of a list": named("notes/ä b.txt", "manifest", first.Manifest)} {
		if _, body := h.get("GET", q, 200); body != "one" {
			t.Errorf("%s: %q", name, body)
		}
	}
	if head, body := h.get("GET", named("page.html"), 200); head.Get("Content-Type") != "application/octet-stream" || !strings.Contains(body, "<script>") {
		t.Errorf("a page is %s: %s", head.Get("Content-Type"), body)
	}
	if _, body := h.get("GET", named("z.bin"), 200); body != large {
		t.Errorf("%d bytes of %d came back", len(body), len(large))
	}
	for bytes, want := range map[string]string{
		"0-3": large[:4], "399990-400010": large[399_990:400_011], "500000-": large[500_000:], "-7": large[len(large)-7:], "899990-9999999": large[899_990:],
	} {
		head, body := h.get("GET", named("z.bin"), 206, "Range", "bytes="+bytes)
		if body != want || !strings.HasSuffix(head.Get("Content-Range"), "/900000") {
			t.Errorf("%s: %d bytes, %s", bytes, len(body), head.Get("Content-Range"))
		}
	}
	if head, body := h.get("HEAD", named("z.bin"), 200); head.Get("Content-Length") != "900000" || body != "" {
		t.Errorf("a look at it: %v %q", head, body)
	}
	h.get("GET", named("z.bin"), 416, "Range", "bytes=900000-")
	h.get("GET", named("notes/ä b.txt"), 304, "If-None-Match", etag)
	h.get("GET", named("z.bin"), 200, "Range", "bytes=0-3", "If-Range", etag) // of another file: the whole
	for query, want := range map[string]int{
		"": 400, "name=": 400, "name=..%2Fx": 400, "name=%2Fetc%2Fpasswd": 400, "name=a%0Ab": 400, "name=a&step=-1": 400, "name=a&step=x": 400,
		"name=a&manifest=x": 400, "name=a&x=1": 400, "name=a": 404, "name=notes": 404, "name=page.html&step=1": 404,
		"name=page.html&manifest=" + strings.Repeat("0a", 32): 404, "name=page.html&step=9&manifest=" + first.Manifest: 400,
	} {
		var p messages.Problem
		if h.do("GET", "/v1/tasks/files/file?"+query, "", want, &p); (want == 400) != (p.Field != "") || want == 404 && !strings.HasPrefix(p.Detail, "no such file: ") {
			t.Errorf("%s: %+v", query, p)
		}
	}
	h.do("GET", "/v1/tasks/no-such/file?name=a", "", 404, nil)
	for _, query := range []string{"step=-1", "step=x", "limit=0", "limit=1001", "after=..", "manifest=x", "manifest=" + first.Manifest + "&step=1"} {
		h.do("GET", "/v1/tasks/files/files?"+query, "", 400, nil)
	}
}

// A client reads the same over NATS and over HTTP.
func filesByTheClient(t *testing.T, h *hall) {
	t.Helper()
	over, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	web, err := dispatcher.NewHTTP(h.url, "")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	run := dispatcher.Run("files")
	for name, client := range map[string]*dispatcher.Client{"NATS": over, "HTTP": web} {
		t.Run(name, func(t *testing.T) {
			list, err := client.Files().List(t.Context(), run, dispatcher.FilesAt{})
			if err != nil || len(list.Files) != 3 {
				t.Fatalf("%+v, %v", list, err)
			}
			first, err := client.Files().List(t.Context(), run, dispatcher.FilesAt{Step: new(1)})
			if err != nil || len(first.Files) != 1 {
				t.Fatalf("%+v, %v", first, err)
			}
			for _, tc := range []struct {
				name, want string
				at         dispatcher.FilesAt
			}{
				{"z.bin", large, dispatcher.FilesAt{}},
				{"notes/ä b.txt", "two!", dispatcher.FilesAt{Manifest: list.Manifest}},
				{"notes/ä b.txt", "one", dispatcher.FilesAt{Step: new(2)}},
				{"notes/ä b.txt", "one", dispatcher.FilesAt{Manifest: first.Manifest}},
			} {
				var got bytes.Buffer
				f, err := client.Files().Get(t.Context(), run, tc.name, tc.at, &got)
				if err != nil || got.String() != tc.want {
					t.Errorf("%s: %d bytes, %v", tc.name, got.Len(), err)
					continue
				}
				if diff := cmp.Diff(saved(tc.name, tc.want), *f); diff != "" {
					t.Error(diff)
				}
			}
			if _, err := client.Files().Get(t.Context(), run, "none", dispatcher.FilesAt{}, io.Discard); !errors.Is(err, dispatcher.ErrNoFile) {
				t.Errorf("a file that is not there: %v", err)
			}
			if _, err := client.Files().List(t.Context(), run, dispatcher.FilesAt{Manifest: strings.Repeat("0a", 32)}); !errors.Is(err, dispatcher.ErrNoFile) {
				t.Errorf("a list that is not there: %v", err)
			}
			if _, err := client.Files().List(t.Context(), dispatcher.Run("none"), dispatcher.FilesAt{}); !errors.Is(err, dispatcher.ErrNotFound) {
				t.Errorf("a run that is not there: %v", err)
			}
		})
	}
}

// The files of a named workspace are read without the run that left them there, over NATS and over HTTP alike.
func filesOfAWorkspace(t *testing.T, h *hall) {
	t.Helper()
	h.do("POST", "/v1/tasks?wait=60s", `{"id":"shared","input":"write","workspace":"w"}`, 200, nil)
	over, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	web, err := dispatcher.NewHTTP(h.url, "")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	for name, client := range map[string]*dispatcher.Client{"NATS": over, "HTTP": web} {
		of := client.Workspaces()
		list, err := of.Files(t.Context(), messages.DefaultTenant, "w")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []messages.SavedFile{saved("notes/ä b.txt", "two!"), saved("page.html", "<script>alert(1)</script>"), saved("z.bin", large)}
		if diff := cmp.Diff(want, list.Files); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var got bytes.Buffer
		if f, err := of.File(t.Context(), messages.DefaultTenant, "w", "z.bin", &got); err != nil || got.String() != large || *f != want[2] {
			t.Errorf("%s: %d bytes, %+v, %v", name, got.Len(), f, err)
		}
		for _, missing := range []string{"none", "w"} {
			if _, err := of.File(t.Context(), messages.DefaultTenant, missing, "none", io.Discard); !errors.Is(err, dispatcher.ErrNoFile) {
				t.Errorf("%s: a file of %s that is not there: %v", name, missing, err)
			}
		}
	}
	for query, want := range map[string]int{"name=page.html": 200, "": 400, "name=..%2Fx": 400, "name=page.html&step=1": 400, "name=x": 404} {
		resp := h.send("GET", "/v1/workspaces/w/file?"+query, "")
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", query, resp.Status, want)
		}
		if want == 200 && (resp.Header.Get("Content-Type") != "application/octet-stream" || resp.Header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("a page is served as %v", resp.Header)
		}
	}
}

// The files of a tenant are seen by its own callers alone, though another one knows the hash of their list, and within a tenant by
// the run that has them.
func TestFilesOfAnotherTenant(t *testing.T) {
	g := openGuarded(t)
	theirs, ours := g.key("harbour", control.RoleAdmin), g.key("acme", control.RoleAdmin)
	g.do("POST", "/v1/tasks?wait=60s", `{"id":"w","input":"write"}`, 200, nil, theirs...)
	g.do("POST", "/v1/tasks?wait=60s", `{"id":"w","input":"hi"}`, 200, nil, ours...)
	g.do("POST", "/v1/tasks?wait=60s", `{"id":"other","input":"hi"}`, 200, nil, theirs...)
	var list control.FileList
	if g.do("GET", "/v1/tasks/w/files", "", 200, &list, theirs...); len(list.Files) != 1 {
		t.Fatalf("%+v", list)
	}
	g.do("GET", "/v1/tasks/w/file?name=a.txt&manifest="+list.Manifest, "", 200, nil, theirs...)
	for _, tc := range []struct {
		path    string
		headers []string
	}{
		{"/v1/tasks/w/file?name=a.txt", ours},
		{"/v1/tasks/w/file?name=a.txt&manifest=" + list.Manifest, ours},
		{"/v1/tasks/w/files?manifest=" + list.Manifest, ours},
		{"/v1/tasks/other/files?manifest=" + list.Manifest, theirs},
	} {
		g.do("GET", tc.path, "", 404, nil, tc.headers...)
	}
	g.do("GET", "/v1/tasks/w/file?name=a.txt", "", 403, nil, append([]string{"Longshore-Tenant", "harbour"}, ours...)...)
	g.do("GET", "/v1/tasks/w/file?name=a.txt", "", 401, nil)
	for _, tc := range []struct {
		headers []string
		want    string
		err     error
	}{{theirs, "hi", nil}, {ours, "", dispatcher.ErrNoFile}} {
		web, err := dispatcher.NewHTTP(g.url, strings.TrimPrefix(tc.headers[1], "Bearer "))
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		_, err = web.Files().Get(t.Context(), dispatcher.Run("w"), "a.txt", dispatcher.FilesAt{}, &got)
		web.Close()
		if got.String() != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("a client with a key reads %q, %v", got.String(), err)
		}
	}
}
