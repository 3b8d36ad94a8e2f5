package dispatcher

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
)

// Errors of uploads.
var (
	// ErrUploadsFull means that the tenant has as much uploaded as it may, which no run refers to yet.
	ErrUploadsFull = control.ErrUploadsFull
	// ErrContentChanged means that a content has changed since its hash was taken.
	ErrContentChanged = errors.New("it changed while it was uploaded")
)

const (
	smallUpload   = 64 << 10  // bytes of a content that travels with others in one request
	uploadRequest = 512 << 10 // bytes of contents in one request, at most
	uploadFrame   = 16 << 10  // of a message, for what surrounds them
	uploadsAtOnce = 4
	uploadTries   = 3
	uploadTimeout = 30 * time.Minute // of one content: dispatchers end it then
	giveUpTimeout = 5 * time.Second
)

// Upload is a content to be uploaded, which is read when it is needed.
type Upload struct {
	control.Content

	Open func() (io.ReadCloser, error)
}

// Missing returns those of the hashes of contents that the tenant has not stored. The others stay for half an hour at least.
func (of Files) Missing(ctx context.Context, tenant string, hashes []string) (missing []string, err error) {
	for len(hashes) > 0 {
		page := hashes[:min(len(hashes), control.MaxContents)]
		hashes = hashes[len(page):]
		var reply control.MissingReply
		err := of.again(ctx, func() error {
			return of.client.request(ctx, control.SubjectMissing, control.MissingRequest{Tenant: of.owner(tenant), Hashes: page}, &reply)
		})
		if err != nil {
			return nil, err
		}
		missing = append(missing, reply.Missing...)
	}
	return missing, nil
}

// owner is the tenant whose contents are meant.
func (of Files) owner(tenant string) string {
	return cmp.Or(tenant, of.client.tenant, messages.DefaultTenant)
}

// Upload stores what r has for a tenant, by default that of the client, so that a task may refer to it by its hash. It reads r twice, and
// the second time only if it is not stored yet. What no run refers to is removed after an hour.
func (of Files) Upload(ctx context.Context, tenant string, r io.ReadSeeker) (control.Content, error) {
	sum := sha256.New()
	size, err := io.Copy(sum, r)
	if err != nil {
		return control.Content{}, fmt.Errorf("read the content: %w", err)
	}
	c := control.Content{Hash: hex.EncodeToString(sum.Sum(nil)), Size: size}
	missing, err := of.Missing(ctx, tenant, []string{c.Hash})
	if err != nil || len(missing) == 0 {
		return c, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return c, fmt.Errorf("read the content again: %w", err)
	}
	return c, of.Put(ctx, tenant, c, r)
}

// UploadAll stores those contents that are missing for a tenant, small ones together. It holds few of them at a time. If progress is not
// nil, it is called with the size of each once it is stored, perhaps by several goroutines at once.
func (of Files) UploadAll(ctx context.Context, tenant string, contents []Upload, progress func(bytes int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	contents, err := of.wanted(ctx, tenant, contents, progress)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploadsAtOnce)
	var batch []Upload
	var size int64
	flush := func() {
		if together := batch; len(together) > 0 {
			group.Go(func() error { return of.putTogether(ctx, tenant, together, progress) })
		}
		batch, size = nil, 0
	}
	for _, c := range contents {
		if c.Size > of.together() {
			group.Go(func() error { return of.putOpened(ctx, tenant, c, progress) })
			continue
		}
		if size+c.Size > of.room() || len(batch) == control.MaxContents {
			flush()
		}
		batch, size = append(batch, c), size+c.Size
	}
	flush()
	return group.Wait()
}

// wanted are those of the contents that must be uploaded, each once.
func (of Files) wanted(ctx context.Context, tenant string, contents []Upload, progress func(int64)) (wanted []Upload, err error) {
	hashes := make([]string, len(contents))
	for i := range contents {
		hashes[i] = contents[i].Hash
	}
	slices.Sort(hashes)
	missing, err := of.Missing(ctx, tenant, slices.Compact(hashes))
	if err != nil {
		return nil, err
	}
	want := make(map[string]bool, len(missing))
	for _, hash := range missing {
		want[hash] = true
	}
	for _, c := range contents {
		if !want[c.Hash] {
			progress(c.Size)
			continue
		}
		delete(want, c.Hash)
		wanted = append(wanted, c)
	}
	return wanted, nil
}

// room is how many bytes of contents one request may have.
func (of Files) room() int64 {
	if of.client.remote != nil {
		return uploadRequest
	}
	return max(1, min(uploadRequest, (of.client.nc.MaxPayload()-uploadFrame)/4*3)) // it travels in base64
}

// together is how large a content may be that travels with others.
func (of Files) together() int64 { return min(smallUpload, of.room()) }

// putOpened stores one content.
func (of Files) putOpened(ctx context.Context, tenant string, c Upload, progress func(int64)) error {
	r, err := c.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if err := of.Put(ctx, tenant, c.Content, r); err != nil {
		return err
	}
	progress(c.Size)
	return nil
}

// putTogether stores contents in one request.
func (of Files) putTogether(ctx context.Context, tenant string, contents []Upload, progress func(int64)) error {
	req := control.UploadRequest{Tenant: of.owner(tenant)}
	for _, c := range contents {
		data, err := c.read()
		if err != nil {
			return err
		}
		req.Contents = append(req.Contents, control.Uploaded{Hash: c.Hash, Data: data})
	}
	if err := of.send(ctx, &req); err != nil {
		return err
	}
	for _, c := range contents {
		progress(c.Size)
	}
	return nil
}

// read returns a content, verified.
func (u *Upload) read() (_ []byte, err error) {
	r, err := u.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err := io.ReadAll(io.LimitReader(r, u.Size+1))
	if err == nil && manifest.HashOf(data) != u.Hash {
		err = ErrContentChanged
	}
	return data, err
}

func (of Files) send(ctx context.Context, req *control.UploadRequest) error {
	return of.again(ctx, func() error {
		var reply control.UploadReply
		return of.client.request(ctx, control.SubjectUpload, req, &reply)
	})
}

// Put stores a content of a known hash and size for a tenant; it reads no more of r. What is not what the hash says is a
// *messages.FieldError, and nothing of it is stored.
func (of Files) Put(ctx context.Context, tenant string, c control.Content, r io.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	r = io.LimitReader(r, c.Size)
	switch {
	case of.client.remote != nil && c.Size > smallUpload:
		return of.client.remote.put(ctx, of.owner(tenant), c, r)
	case c.Size > of.together():
		return of.putParts(ctx, tenant, c, r)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("read the content: %w", err)
	}
	return of.send(ctx, &control.UploadRequest{Tenant: of.owner(tenant), Contents: []control.Uploaded{{Hash: c.Hash, Data: data}}})
}

// putParts stores a content part by part, or leaves nothing of it.
func (of Files) putParts(ctx context.Context, tenant string, c control.Content, r io.Reader) (err error) {
	req := control.PartRequest{Tenant: of.owner(tenant), Content: c}
	defer func() {
		if err != nil && req.Upload != "" {
			err = errors.Join(err, of.giveUp(ctx, req))
		}
	}()
	part := make([]byte, min(of.room(), c.Size))
	for {
		req.Data = part[:min(int64(len(part)), c.Size-req.Offset)]
		if _, err := io.ReadFull(r, req.Data); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return ErrContentChanged
		} else if err != nil {
			return fmt.Errorf("read the content: %w", err)
		}
		var reply control.PartReply
		err := of.again(ctx, func() error { return of.client.request(ctx, control.SubjectUploadPart, &req, &reply) })
		switch {
		case err != nil:
			return err
		case reply.Done:
			return nil
		case reply.Next != req.Offset+int64(len(req.Data)):
			return errors.New("upload: the answer does not fit the part that was sent")
		}
		req.Upload, req.Offset = reply.Upload, reply.Next
	}
}

// giveUp removes what an upload has stored, as far as that is possible now: dispatchers do it an hour later otherwise. Those that have
// refused the content have done so already.
func (of Files) giveUp(ctx context.Context, req control.PartRequest) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTimeout)
	defer cancel()
	req.Data, req.GiveUp, req.Offset = nil, true, 0
	err := of.client.request(ctx, control.SubjectUploadPart, &req, &control.PartReply{})
	if errors.Is(err, control.ErrNoUpload) {
		return nil
	}
	return err
}

// again makes a request that may be made twice again when its answer is lost or a dispatcher stops.
func (of Files) again(ctx context.Context, ask func() error) error {
	for n := 1; ; n++ {
		err := ask()
		if err == nil || n == uploadTries || ctx.Err() != nil || !lost(err) {
			return err
		}
		if bus.Pause(ctx, bus.Backoff(n)) != nil {
			return err
		}
	}
}

// lost reports whether an error leaves it open what became of a request.
func lost(err error) bool {
	if p, ok := errors.AsType[*messages.Problem](err); ok {
		return p.Status == http.StatusServiceUnavailable
	}
	_, wrong := errors.AsType[*messages.FieldError](err)
	return !wrong && !errors.Is(err, ErrBound)
}

// put sends a content as the body of a request.
func (r *remote) put(ctx context.Context, tenant string, c control.Content, body io.Reader) error {
	read := &counted{r: body}
	reply, err := r.json(ctx, call{
		method: http.MethodPut, path: "/v1/files/" + c.Hash, tenant: tenant, stream: read, length: c.Size, media: "application/octet-stream",
	})
	switch {
	case err != nil && read.short(c.Size):
		return ErrContentChanged
	case err != nil:
		return meaning(control.Of(control.SubjectUpload), err)
	case !bytes.Contains(reply, []byte(c.Hash)):
		return fmt.Errorf("upload to %s: the answer is of another content", r.base)
	default:
		return nil
	}
}

// counted counts what is read. A request that has failed may still read.
type counted struct {
	r     io.Reader
	n     atomic.Int64
	ended atomic.Bool
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	if errors.Is(err, io.EOF) {
		c.ended.Store(true)
	}
	return n, err
}

// short reports whether there was less to read than was announced.
func (c *counted) short(size int64) bool { return c.ended.Load() && c.n.Load() < size }
