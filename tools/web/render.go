package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/outbound"
)

// Limits of what a result holds, in bytes.
const (
	maxHTML  = 1 << 20   // of a page that is converted
	maxText  = 900 << 10 // below what one call may tell
	maxRaw   = 600 << 10 // before base64
	maxShown = 1 << 10   // of a header
	// Left out at the end of a body that was cut, where half a secret would not be known as one.
	maxSecret = 8 << 10
)

// render is the Result of a response.
func (b *browser) render(ctx context.Context, h *hop, resp *outbound.Response, format, name string) tools.Result {
	body, cut := resp.Body, resp.Truncated
	if cut {
		body = body[:max(0, len(body)-maxSecret)]
	}
	if name != "" {
		body = b.credentials.Redact(name, body)
	}
	kind := cmp.Or(resp.Header.Get("Content-Type"), http.DetectContentType(body))
	var out strings.Builder
	fmt.Fprintf(&out, "HTTP %d %s\n%s\n", resp.Status, http.StatusText(resp.Status), shown(h.url))
	for _, key := range []string{"Content-Type", "Content-Length", "Location", "Last-Modified", "Etag", "Link", "Allow", "Retry-After"} {
		if v := resp.Header.Get(key); v != "" && (key != "Content-Length" || h.method == http.MethodHead) {
			if name != "" {
				v = string(b.credentials.Redact(name, []byte(v)))
			}
			fmt.Fprintf(&out, "%s: %s\n", key, strict.Clip(v, maxShown))
		}
	}
	text, more, err := b.written(ctx, body, kind, cmp.Or(format, formatMarkdown), h)
	cut = cut || more
	switch {
	case err != nil:
		text = "(" + err.Error() + ")"
	case cut:
		text += "\n(The body is longer; this is its beginning.)"
	case text == "":
		text = "(no body)"
	}
	out.WriteString("\n" + text)
	failed := err != nil || resp.Status >= http.StatusBadRequest
	if failed && h.after != "" {
		out.WriteString("\n" + h.warning()[1:])
	}
	r := tools.Text(out.String())
	if failed {
		r.IsError, r.Code = true, messages.CodeToolFailed
		if r.Transient = passing(h, resp.Status); r.Transient {
			r.RetryAfter = retryAfter(resp.Header, time.Now())
		}
	}
	r.Meta = map[string]any{
		"status": resp.Status, "bytes": len(resp.Body), "contentType": strict.Clip(kind, 256), "redirects": h.n, "truncated": cut,
	}
	return r
}

// written is a body as text, and whether there was more of it.
func (b *browser) written(ctx context.Context, body []byte, kind, format string, h *hop) (_ string, more bool, _ error) {
	if format == formatRaw {
		n := min(len(body), maxRaw)
		return base64.StdEncoding.EncodeToString(body[:n]), n < len(body), nil
	}
	media, _, err := mime.ParseMediaType(kind)
	if err != nil {
		media = "application/octet-stream"
	}
	page := format == formatMarkdown && (media == "text/html" || media == "application/xhtml+xml")
	if page && len(body) > maxHTML {
		body, more = body[:maxHTML], true
	}
	text := decoded(body, kind, media)
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return "", false, fmt.Errorf("the body is %d bytes of %s and no text; ask with format raw for the bytes", len(body), strict.Clip(kind, 64))
	}
	if page {
		if text, err = b.page(ctx, text, h.url.Scheme+"://"+h.url.Host); err != nil {
			return "", false, err
		}
	}
	short := strict.Clip(text, maxText)
	return short, more || len(short) < len(text), nil
}

// decoded is a body in UTF-8. What names another character set, or is a page in one, is converted.
func decoded(body []byte, kind, media string) string {
	if utf8.Valid(body) || !strings.HasPrefix(media, "text/") && !strings.Contains(kind, "charset") {
		return string(body)
	}
	r, err := charset.NewReader(bytes.NewReader(body), kind)
	if err != nil {
		return string(body)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return string(body)
	}
	return string(out)
}
