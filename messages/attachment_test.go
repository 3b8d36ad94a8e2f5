package messages_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
)

const pixel = "\x89PNG\r\n\x1a\nrest"

func TestAttachments(t *testing.T) {
	png, pdf := base64.StdEncoding.EncodeToString([]byte(pixel)), base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 rest"))
	with := func(block string) string { return `{"input":[{"text":"What is it?"},` + block + `]}` }
	for name, tt := range map[string]struct{ in, field, reason string }{
		"an image":               {with(`{"image":{"mediaType":"image/png","data":"` + png + `"}}`), "", ""},
		"an address":             {with(`{"image":{"url":"https://host/a.png"}}`), "", ""},
		"a file":                 {with(`{"file":{"name":"a.pdf","mediaType":"application/pdf","data":"` + pdf + `"}}`), "", ""},
		"a file without a name":  {with(`{"file":{"mediaType":"application/pdf","data":"` + pdf + `"}}`), "", ""},
		"no text":                {`{"input":[{"image":{"url":"https://host/a.png"}}]}`, "input", "has no text: say what to do with the attachments"},
		"text and image in one":  {with(`{"text":"x","image":{"url":"https://host/a.png"}}`), "input[1]", "must be one of text, image and file"},
		"bytes and an address":   {with(`{"image":{"data":"` + png + `","url":"https://host/a.png"}}`), "input[1].image.url", "give either data or url, not both"},
		"no bytes":               {with(`{"image":{}}`), "input[1].image.data", "is empty: give the image's bytes as base64, or its https address as url"},
		"another kind":           {with(`{"image":{"mediaType":"image/jpeg","data":"` + png + `"}}`), "input[1].image.mediaType", `is "image/jpeg", but the bytes are image/png`},
		"no image":               {with(`{"image":{"mediaType":"image/png","data":"` + pdf + `"}}`), "input[1].image.data", "is not a PNG, JPEG, GIF or WebP image"},
		"no base64":              {with(`{"image":{"mediaType":"image/png","data":"%%"}}`), "input[1].image.data", ""},
		"plain http":             {with(`{"image":{"url":"http://host/a.png"}}`), "input[1].image.url", "must be an https address without a user, of at most 2048 bytes"},
		"a user in the address":  {with(`{"image":{"url":"https://u:p@host/a.png"}}`), "input[1].image.url", "must be an https address without a user, of at most 2048 bytes"},
		"a long address":         {with(`{"image":{"url":"https://host/` + strings.Repeat("a", 2048) + `"}}`), "input[1].image.url", "must be an https address without a user, of at most 2048 bytes"},
		"a path as name":         {with(`{"file":{"name":"../a.pdf","mediaType":"application/pdf","data":"` + pdf + `"}}`), "input[1].file.name", "must be a name, not a path"},
		"text as file":           {with(`{"file":{"mediaType":"text/plain","data":"eA=="}}`), "input[1].file.mediaType", "must be application/pdf; give text as a text block"},
		"no PDF":                 {with(`{"file":{"mediaType":"application/pdf","data":"eA=="}}`), "input[1].file.data", "is not a PDF"},
		"unknown field":          {with(`{"file":{"path":"/etc/passwd"}}`), "input[1].file.path", "unknown field"},
		"too many":               {with(strings.Repeat(`{"image":{"url":"https://host/a.png"}},`, 16) + `{"image":{"url":"https://host/a.png"}}`), "input", "has more than 16 images and files"},
		"too large, with base64": {with(fmt.Sprintf(`{"image":{"mediaType":"image/png","data":%q}}`, base64.StdEncoding.EncodeToString([]byte(pixel+strings.Repeat("x", 786_432))))), "input", "larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := messages.DecodeTask([]byte(tt.in))
			fe, _ := errors.AsType[*messages.FieldError](err)
			switch {
			case tt.field == "" && err != nil:
				t.Error(err)
			case tt.field != "" && (fe == nil || fe.Field != tt.field || tt.reason != "" && fe.Reason != tt.reason):
				t.Errorf("%v, want %s: %s", err, tt.field, tt.reason)
			}
		})
	}
}

func TestAttachmentsAreShown(t *testing.T) {
	in := messages.Input{
		{Text: "Compare "},
		{Image: &messages.Image{MediaType: "image/png", Data: []byte(pixel)}},
		{File: &messages.File{Name: "a.pdf", MediaType: messages.TypePDF, Data: []byte("%PDF-")}},
	}
	if diff := cmp.Diff("Compare [image png, 1 kB][file a.pdf, 1 kB]", in.Shown()); diff != "" {
		t.Error(diff)
	}
}
