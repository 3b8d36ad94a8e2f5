package markdown

import (
	"context"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	parsedOnce = 512     // bytes, after which the time is looked at
	maxNodes   = 500_000 // of the tree
)

// ErrPage means that a page is too large or too entangled, or that the time was up.
var ErrPage = errors.New("the page cannot be written as Markdown")

// parsed is the tree of a page. It ends soon after ctx does, and its memory is bounded by that; the parser nests 512 deep, at most.
func parsed(ctx context.Context, page string) (*html.Node, error) {
	doc, err := html.Parse(&unhurried{ctx: ctx, from: strings.NewReader(page)})
	if err != nil {
		return nil, err
	}
	if nodes(doc, 0) > maxNodes {
		return nil, ErrPage
	}
	return doc, nil
}

// unhurried gives a parser little at a time, and an error once its time is up: there is no other way to stop one.
type unhurried struct {
	ctx  context.Context //nolint:containedctx // a reader has no other
	from io.Reader
}

// Read implements io.Reader.
func (r *unhurried) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, ErrPage
	}
	return r.from.Read(p[:min(len(p), parsedOnce)])
}

// nodes counts those of a tree and some before, until there are too many.
func nodes(n *html.Node, before int) int {
	before++
	for c := n.FirstChild; c != nil && before <= maxNodes; c = c.NextSibling {
		before = nodes(c, before)
	}
	return before
}

// title is the text of the first element of that name; empty without one.
func title(n *html.Node) string {
	if n.DataAtom == atom.Title && n.FirstChild != nil {
		return strings.Join(strings.Fields(n.FirstChild.Data), " ")
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if text := title(c); text != "" {
			return text
		}
	}
	return ""
}
