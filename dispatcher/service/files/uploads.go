package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
)

// missing answers which contents must be uploaded.
func (fs *Files) missing(ctx context.Context, req control.MissingRequest) (any, error) {
	tenant, err := owner(req.Tenant)
	if err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	missing, err := fs.cfg.Uploads.Missing(ctx, tenant, req.Hashes)
	if err != nil {
		return nil, err
	}
	return control.MissingReply{Missing: append([]string{}, missing...)}, nil
}

// upload stores contents that come whole.
func (fs *Files) upload(ctx context.Context, req control.UploadRequest) (any, error) {
	tenant, err := owner(req.Tenant)
	if err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	contents := make(map[string][]byte, len(req.Contents))
	reply := control.UploadReply{Contents: make([]control.Content, len(req.Contents))}
	for i, c := range req.Contents {
		contents[c.Hash] = c.Data
		reply.Contents[i] = control.Content{Hash: c.Hash, Size: int64(len(c.Data))}
	}
	if err := fs.cfg.Uploads.Put(ctx, tenant, contents); err != nil {
		return nil, refusedUpload(tenant, err)
	}
	return reply, nil
}

// part stores a part of a content.
func (fs *Files) part(ctx context.Context, req control.PartRequest) (any, error) {
	tenant, err := owner(req.Tenant)
	if err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	p := files.Part{Hash: req.Hash, Size: req.Size, Upload: req.Upload, Offset: req.Offset, Data: req.Data}
	if req.GiveUp {
		return control.PartReply{}, refusedUpload(tenant, fs.cfg.Uploads.GiveUp(ctx, tenant, p))
	}
	done, err := fs.cfg.Uploads.Part(ctx, tenant, p)
	if err != nil {
		return nil, refusedUpload(tenant, err)
	}
	return control.PartReply{Upload: done.Upload, Next: done.Next, Done: done.Done}, nil
}

// owner is the tenant whose contents a request is about.
func owner(tenant string) (string, error) {
	tenant = cmp.Or(tenant, messages.DefaultTenant)
	return tenant, strict.CheckToken("tenant", tenant)
}

// refusedUpload is what an error of an upload means to the caller.
func refusedUpload(tenant string, err error) error {
	full, isFull := errors.AsType[*files.NoRoomError](err)
	large, isLarge := errors.AsType[*files.TooLargeError](err)
	switch {
	case isFull:
		p := control.RateLimited(tenant, "uploads", fmt.Sprintf("%v (LONGSHORE_UPLOAD_BYTES): submit the tasks that use them, or "+
			"wait until they are removed, an hour after their upload", full), uploadRetry)
		return p
	case isLarge:
		return &messages.Problem{
			Type: "about:blank", Title: http.StatusText(http.StatusRequestEntityTooLarge), Status: http.StatusRequestEntityTooLarge,
			Code: messages.CodeInvalidInput, Detail: large.Error() + " (LONGSHORE_WORKSPACE_BYTES)",
		}
	case errors.Is(err, manifest.ErrDamaged):
		return &messages.FieldError{Field: "hash", Reason: "is not the SHA-256 of what was uploaded: nothing of it is stored"}
	case errors.Is(err, files.ErrNoUpload):
		return fmt.Errorf("%w: begin it again (%w)", control.ErrNoUpload, err)
	default:
		return err
	}
}

// uploadRetry is when to come again to a tenant's uploads that are full: a run may refer to some by then.
const uploadRetry = files.Margin / 60
