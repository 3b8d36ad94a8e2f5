// Package console serves the pages in which people see and steer a fleet with a browser.
//
// The pages are static ES modules, embedded in the program: they need no build, and nothing from elsewhere. They are a client of the
// public HTTP API like any other, so what a caller may not do there, the pages cannot do either. A view is one file in static/views.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed static
var files embed.FS

// policy lets the pages load what this package serves and ask the API beside it, and nothing else. There is no code or style in
// markup, no frame, and markup becomes part of a page only through the library that sanitizes it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify"

const (
	root     = "/console/"
	versions = root + "v-"
	page     = root + "index.html"
)

// asset is a file as it is sent.
type asset struct {
	data       []byte
	packed     func() []byte // with gzip, at most once: at the start of a dispatcher it would take longer than most of the rest
	media, tag string
}

// Console is an http.Handler.
type Console struct {
	next   http.Handler
	assets map[string]asset // by path
	// The page names what it loads by paths that begin so and are those of these contents: a browser asks for them once.
	versioned string
}

// New returns a handler that serves the pages and leaves all other requests to next.
func New(next http.Handler) (*Console, error) {
	c := &Console{next: next, assets: map[string]asset{}}
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		c.assets[root+strings.TrimPrefix(name, "static/")] = assetOf(name, data)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the console: %w", err)
	}
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c.assets)) {
		_, _ = fmt.Fprintln(all, name, c.assets[name].tag) // a hash takes all
	}
	c.versioned = versions + hex.EncodeToString(all.Sum(nil)[:12]) + "/"
	c.assets[page] = assetOf(page, bytes.ReplaceAll(c.assets[page].data, []byte(`="`+root), []byte(`="`+c.versioned)))
	return c, nil
}

func assetOf(name string, data []byte) asset {
	media := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // the tables of the system differ
	case ".js":
		media = "text/javascript; charset=utf-8"
	case ".svg":
		media = "image/svg+xml"
	case "":
		media = "text/plain; charset=utf-8"
	}
	sum := sha256.Sum256(data)
	return asset{data, sync.OnceValue(func() []byte { return pack(data) }), media, `"` + hex.EncodeToString(sum[:12]) + `"`}
}

func pack(data []byte) []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // a known level
	_, _ = w.Write(data)                                       // a buffer takes all
	_ = w.Close()
	return packed.Bytes()
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		c.next.ServeHTTP(w, r)
		return
	}
	name := r.URL.Path
	if isPage(name) {
		name = page
	}
	cached := "no-cache" // asked for again each time, and sent when it has changed
	if rest, ok := strings.CutPrefix(name, versions); ok {
		if strings.HasPrefix(name, c.versioned) {
			cached = "public, max-age=31536000, immutable"
		}
		// The page of another version, which a dispatcher that is being replaced has sent, gets what there is.
		_, rest, _ = strings.Cut(rest, "/")
		name = root + rest
	}
	a, ok := c.assets[name]
	if !ok {
		c.next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", cached)
	a.serve(w, r)
}

// isPage reports whether a path is one of a page. Its first part names the view, the rest says of what.
func isPage(p string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	switch first {
	case "runs", "compare", "inbox", "try", "agents", "prompts", "sessions", "batches", "schedules", "lanes", "dead-letters", "workspaces", "memory", "tools", "suites", "workers",
		"quotas", "keys", "audit":
		return true
	default:
		return p == "/"
	}
}

func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.media)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", a.tag)
	if slices.Contains(r.Header.Values("If-None-Match"), a.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	data := a.data
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		data = a.packed()
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(data) // the connection may be gone
}
