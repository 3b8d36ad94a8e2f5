package parts

import (
	"bytes"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"
)

type kind int

const (
	kindNone kind = iota
	kindText
	kindMarkdown
	kindHTML
	kindPDF
)

// sniffed is how many bytes of a content say whether it is a text.
const sniffed = 8 << 10

// kindOf is what a document is. A PDF file is one whatever its name is.
func kindOf(name string, data []byte) kind {
	head := data[:min(len(data), sniffed)]
	switch ext := strings.ToLower(path.Ext(name)); {
	case bytes.HasPrefix(bytes.TrimLeft(head, "\r\n\t \xef\xbb\xbf"), []byte("%PDF-")):
		return kindPDF
	case ext == ".html" || ext == ".htm" || ext == ".xhtml":
		return kindHTML
	case !isText(head):
		return kindNone
	case ext == ".md" || ext == ".markdown" || ext == ".mdx":
		return kindMarkdown
	case ext == "" && strings.HasPrefix(http.DetectContentType(head), "text/html"): // such as the standard input
		return kindHTML
	default:
		return kindText
	}
}

// isText reports whether a content begins as a text does, of which the end may be in the middle of a character.
func isText(head []byte) bool {
	if utf16Of(head) != nil {
		return true
	}
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		switch {
		case r == 0:
			return false
		case r == utf8.RuneError && n == 1 && utf8.FullRune(head):
			return !bytes.ContainsRune(head, 0) // a text in another encoding, which is refused with what to do
		case r == utf8.RuneError && n == 1:
			return true
		}
		head = head[n:]
	}
	return true
}
