// Package parts reads documents and cuts them into the parts that long-term memory keeps: texts, Markdown, HTML, and the text of PDF files.
// Begin with [New], call [Reader.Read] for each document, and Close at the end.
//
// A document may come from anywhere. What reading it costs is bounded in time, memory and the number of parts, and an error says what is wrong
// with it; programs in it are not run, and nothing that it refers to is fetched. A PDF file is read in a WebAssembly sandbox of its own that
// reaches neither files nor the network.
//
// The same bytes with the same Cut are the same parts.
package parts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages/strict"
)

// Limits of a document.
const (
	MaxFile  = 64 << 20 // bytes of a file, which a PDF file alone may have
	maxText  = 16 << 20 // bytes of a text, also that of a PDF file
	maxHTML  = 4 << 20  // bytes
	MaxParts = 10_000
	maxHead  = 200 // bytes of a title, or of a heading
	maxAbove = 512 // bytes of all that a part begins with
)

// ErrNoText means that a document has no text, such as a picture or a program.
var ErrNoText = errors.New("it is no text, Markdown, HTML or PDF")

// Document is what a file says.
type Document struct {
	Title string
	Pages int // of a PDF file; else 0
	Parts []Part
}

// Part is a piece of a document. Text begins with the title and the headings that it stands below, on a line of their own.
type Part struct {
	Text string
	Page int // of a PDF file, from 1; else 0
}

// section is a text below one heading, or of one page.
type section struct {
	headings []string
	page     int
	text     string
}

// Reader reads documents. Safe for concurrent use. It holds about 100 MiB from the first PDF file on.
type Reader struct{ pdf pdfReader }

// New returns a Reader.
func New() *Reader { return &Reader{} }

// Close lets go of what the Reader holds.
func (r *Reader) Close() error { return r.pdf.close() }

// Read cuts a document. Its name says what it is, and where that does not, its content. An error is about the document alone, unless ctx
// has ended.
func (r *Reader) Read(ctx context.Context, name string, data []byte, cut Cut) (Document, error) {
	var (
		d        Document
		sections []section
		err      error
	)
	switch kindOf(name, data) {
	case kindPDF:
		d.Title, sections, err = r.pdf.read(ctx, data)
		d.Pages = len(sections)
	case kindHTML:
		d.Title, sections, err = fromHTML(ctx, data)
	case kindMarkdown:
		d.Title, sections, err = fromText(data, true)
	case kindText:
		d.Title, sections, err = fromText(data, false)
	default:
		return d, ErrNoText
	}
	if err != nil {
		return d, err
	}
	if d.Title == "" {
		base := path.Base(name)
		d.Title = cmp.Or(strings.TrimSuffix(base, path.Ext(base)), base)
	}
	d.Title = headline(d.Title)
	for i := range sections {
		s := &sections[i]
		above := s.above(d.Title)
		for text := range cut.texts(s.text) {
			if len(d.Parts) == MaxParts {
				return Document{}, fmt.Errorf("it has more than %d parts: raise --chunk-size, or split it", MaxParts)
			}
			d.Parts = append(d.Parts, Part{Text: above + text, Page: s.page})
		}
	}
	if len(d.Parts) == 0 {
		if d.Pages > 0 {
			return d, errors.New("its pages have no text: they may be pictures of a scanner, which need text recognition first")
		}
		return d, errors.New("it is empty")
	}
	return d, nil
}

// above is the line that a part of a section begins with.
func (s *section) above(title string) string {
	line := []string{title}
	for _, h := range s.headings {
		if h = headline(h); h != "" && h != title {
			line = append(line, h)
		}
	}
	return strict.Clip(strings.Join(line, " > "), maxAbove) + "\n\n"
}

// headline is a title or a heading on one line.
func headline(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return strict.Clip(strings.Join(strings.Fields(s), " "), maxHead)
}

// plain is a text of which only line breaks and tabs control anything. A soft hyphen at the end of a line, as PDF files have it, joins its word.
func plain(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\f", "\n").Replace(s)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\uFEFF' || r == '\uFFFE' {
			return -1
		}
		return r
	}, s)
}
