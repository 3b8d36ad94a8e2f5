package parts

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/longshore-run/longshore/tools/web/markdown"
)

// pageTime bounds how long a page is parsed, and with that the memory of its tree.
const pageTime = 2 * time.Second

// fromHTML is a page as Markdown is.
func fromHTML(ctx context.Context, data []byte) (string, []section, error) {
	if len(data) > maxHTML {
		return "", nil, fmt.Errorf("it has more than %d bytes of HTML: split it", maxHTML)
	}
	r, err := charset.NewReader(bytes.NewReader(data), "text/html")
	if err != nil {
		return "", nil, fmt.Errorf("its characters cannot be read: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, 4*maxHTML))
	if err != nil {
		return "", nil, fmt.Errorf("its characters cannot be read: %w", err)
	}
	limited, stop := context.WithTimeout(ctx, pageTime)
	defer stop()
	page, err := markdown.Convert(limited, string(text), "")
	switch {
	case ctx.Err() != nil:
		return "", nil, context.Cause(ctx)
	case err != nil:
		return "", nil, errors.New("its HTML is too large or too entangled: split it, or save it as text")
	}
	title, sections := sectionsOf(plain(page.Text))
	if page.Title != "" {
		title = page.Title
	}
	return title, sections, nil
}

// fromText is a text, as Markdown or as it is.
func fromText(data []byte, marked bool) (title string, sections []section, err error) {
	text, err := decoded(data)
	if err != nil {
		return "", nil, err
	}
	if len(text) > maxText {
		return "", nil, fmt.Errorf("it has more than %d bytes of text: split it", maxText)
	}
	if text = plain(text); !marked {
		return "", []section{{text: text}}, nil
	}
	title, sections = sectionsOf(text)
	return title, sections, nil
}

// decoded is a content in UTF-8.
func decoded(data []byte) (string, error) {
	switch order := utf16Of(data); {
	case order != nil:
		if len(data) > 2*maxText {
			return "", fmt.Errorf("it has more than %d bytes of text: split it", maxText)
		}
		units := make([]uint16, 0, len(data)/2)
		for rest := data[2:]; len(rest) > 1; rest = rest[2:] {
			units = append(units, order.Uint16(rest))
		}
		return string(utf16.Decode(units)), nil
	case !utf8.Valid(data):
		return "", errors.New("it is neither UTF-8 nor UTF-16: convert it, for example with iconv")
	case bytes.IndexByte(data, 0) >= 0:
		return "", ErrNoText
	default:
		return strings.TrimPrefix(string(data), "\uFEFF"), nil
	}
}

// utf16Of is the byte order that a text in UTF-16 begins with; nil: it is none.
func utf16Of(data []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return binary.BigEndian
	default:
		return nil
	}
}
