package messages

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// Limits of the images and files in a task's input. Their bytes count as base64 towards MaxInput.
const (
	MaxAttachments = 16
	maxFileName    = 128
	maxImageURL    = 2 << 10
)

// TypePDF is the media type of the files that models read. Text needs no file: it is a text block.
const TypePDF = "application/pdf"

// Image is a picture, either its bytes or where the provider finds it.
type Image struct {
	MediaType string `json:"mediaType,omitempty"` // such as image/png; needed with Data
	Data      []byte `json:"data,omitempty"`
	URL       string `json:"url,omitempty"` // https only
}

// ImageType returns the media type of an image by its first bytes: PNG, JPEG, GIF or WebP, which all providers that see images
// take. It is empty for anything else.
func ImageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")) || bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	default:
		return ""
	}
}

// Shown says what the image is, for people and for models that cannot see.
func (i *Image) Shown() string {
	if i.URL != "" {
		return "[image]"
	}
	return fmt.Sprintf("[image %s, %d kB]", strings.TrimPrefix(i.MediaType, "image/"), (len(i.Data)+999)/1000)
}

func (i *Image) check() error {
	switch kind := ImageType(i.Data); {
	case len(i.Data) > 0 && i.URL != "":
		return &FieldError{Field: "url", Reason: "give either data or url, not both"}
	case i.URL != "":
		return checkImageURL(i.URL)
	case len(i.Data) == 0:
		return &FieldError{Field: "data", Reason: "is empty: give the image's bytes as base64, or its https address as url"}
	case kind == "":
		return &FieldError{Field: "data", Reason: "is not a PNG, JPEG, GIF or WebP image"}
	case i.MediaType != kind:
		return &FieldError{Field: "mediaType", Reason: fmt.Sprintf("is %q, but the bytes are %s", strict.Clip(i.MediaType, maxFileName), kind)}
	}
	return nil
}

// checkImageURL accepts what a provider can fetch. Longshore itself never does.
func checkImageURL(s string) error {
	u, err := url.Parse(s)
	if len(s) > maxImageURL || err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return &FieldError{Field: "url", Reason: fmt.Sprintf("must be an https address without a user, of at most %d bytes", maxImageURL)}
	}
	return nil
}

// File is a document that a model reads. Only PDF so far.
type File struct {
	Name      string `json:"name,omitempty"` // the model is told
	MediaType string `json:"mediaType"`
	Data      []byte `json:"data"`
}

// Shown says what the file is, for people.
func (f *File) Shown() string {
	return fmt.Sprintf("[file %s, %d kB]", f.Title(), (len(f.Data)+999)/1000)
}

// Title is the name of the file, or one for a file without.
func (f *File) Title() string {
	if f.Name == "" {
		return "document.pdf"
	}
	return f.Name
}

// Tokens guesses how many tokens a model reads in the file: a page is about 50 kB and 2,000 tokens.
func (f *File) Tokens() int { return 2000 * (1 + len(f.Data)/50_000) }

func (f *File) check() error {
	if err := strict.CheckText("name", f.Name, maxFileName); err != nil {
		return err
	}
	switch {
	case strings.ContainsAny(f.Name, "/\\\n\r"):
		return &FieldError{Field: "name", Reason: "must be a name, not a path"}
	case f.MediaType != TypePDF:
		return &FieldError{Field: "mediaType", Reason: "must be " + TypePDF + "; give text as a text block"}
	case !bytes.HasPrefix(f.Data, []byte("%PDF-")):
		return &FieldError{Field: "data", Reason: "is not a PDF"}
	}
	return nil
}

// Shown is the text of an input, with a word for each image and file.
func (in Input) Shown() string { return shown(in) }

// shown joins the texts of blocks, with a word for each image and file.
func shown(blocks []Block) string {
	if !slices.ContainsFunc(blocks, func(b Block) bool { return b.Image != nil || b.File != nil }) {
		return Input(blocks).Text()
	}
	var s strings.Builder
	for _, b := range blocks {
		s.WriteString(b.Text)
		switch {
		case b.Image != nil:
			s.WriteString(b.Image.Shown())
		case b.File != nil:
			s.WriteString(b.File.Shown())
		}
	}
	return s.String()
}

// check accepts an input of text with images and files.
func (in Input) check() error {
	text, attached := 0, 0
	for i, b := range in {
		field := fmt.Sprintf("input[%d]", i)
		var err error
		switch {
		case b == Block{Image: b.Image} && b.Image != nil:
			err, attached = strict.Under(field+".image", b.Image.check()), attached+1
		case b == Block{File: b.File} && b.File != nil:
			err, attached = strict.Under(field+".file", b.File.check()), attached+1
		case b == Block{Text: b.Text}:
			err = strict.CheckText("input", b.Text, MaxInput)
			text += len(b.Text)
		default:
			err = &FieldError{Field: field, Reason: "must be one of text, image and file"}
		}
		if err != nil {
			return err
		}
	}
	switch {
	case text == 0 && attached > 0:
		return &FieldError{Field: "input", Reason: "has no text: say what to do with the attachments"}
	case text == 0:
		return &FieldError{Field: "input", Reason: "is empty"}
	case attached > MaxAttachments:
		return &FieldError{Field: "input", Reason: fmt.Sprintf("has more than %d images and files", MaxAttachments)}
	case in.Size() > MaxInput:
		return &FieldError{Field: "input", Reason: fmt.Sprintf("larger than %d bytes", MaxInput)}
	}
	return nil
}

// Size returns the bytes of an input: of its text, and of its images and files as base64.
func (in Input) Size() int {
	n := 0
	for _, b := range in {
		n += len(b.Text)
		switch {
		case b.Image != nil:
			n += base64.StdEncoding.EncodedLen(len(b.Image.Data)) + len(b.Image.URL)
		case b.File != nil:
			n += base64.StdEncoding.EncodedLen(len(b.File.Data))
		}
	}
	return n
}
