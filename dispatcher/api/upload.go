package api

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
)

const (
	mediaBytes = "application/octet-stream"
	// Bodies that are read at once for a tenant, and for all; each has a part of half a megabyte in memory.
	maxTenantUploads = 16
	maxUploads       = 128
)

// putFileOperation stores a content that comes as the body.
func putFileOperation() operation {
	return operation{
		method: "PUT", path: "/v1/files/{sha256}", id: "putFile", needs: control.Submit, tag: "files", summary: "Upload a content",
		failures: failuresOf(control.SubjectUpload),
		text: "The body is the content, of the length that Content-Length says, and its SHA-256 the name in the path. It is stored once it has been " +
			"verified; nothing is left of one that was cut or has another hash. One that is stored already is not read. A content that no run " +
			"refers to is removed after an hour.",
		reply: control.Content{}, stream: putFile, media: "application/json", takes: mediaBytes,
	}
}

// putFile stores the body.
func putFile(w http.ResponseWriter, q *query) error {
	tenant, err := q.tenant()
	if err != nil {
		return err
	}
	content := control.Content{Hash: q.r.PathValue("sha256"), Size: q.r.ContentLength}
	switch {
	case !manifest.ValidHash(content.Hash):
		return &messages.FieldError{Field: "sha256", Reason: "must be 64 hexadecimal digits in lower case"}
	case content.Size < 0:
		return problemf(http.StatusLengthRequired, messages.CodeInvalidInput, "the header Content-Length is missing: it must say how long the content is")
	}
	leave, ok := q.api.uploads.enter(tenant)
	if !ok {
		p := problemf(http.StatusTooManyRequests, messages.CodeRateLimited, "too many uploads at once: at most "+strconv.Itoa(maxTenantUploads)+" of a tenant")
		p.RetryAfter = 1
		return p
	}
	defer leave()
	ctx, stop := q.api.untilDrain(q.r.Context())
	defer stop()
	files := q.api.cfg.Client.Files()
	missing, err := files.Missing(ctx, tenant, []string{content.Hash})
	if err == nil && len(missing) > 0 {
		err = files.Put(ctx, tenant, content, q.body)
	}
	if err != nil {
		return q.problemOf(err)
	}
	q.api.write(ctx, w, q, content)
	return nil
}

// uploading counts the bodies that are being read. The zero value is ready.
type uploading struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

// enter lets an upload of a tenant begin; ok is false if there are too many.
func (u *uploading) enter(tenant string) (leave func(), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == maxUploads || u.of[tenant] == maxTenantUploads {
		return nil, false
	}
	if u.of == nil {
		u.of = map[string]int{}
	}
	u.all++
	u.of[tenant]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.all--
		if u.of[tenant]--; u.of[tenant] == 0 {
			delete(u.of, tenant)
		}
	}, true
}
