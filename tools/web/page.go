package web

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// Limits of a page that is converted. A parser makes a tree of 300 MiB of 24 kB in which bold text is never closed: it opens all of it
// anew in each paragraph.
const (
	maxParse   = 2 * time.Second // of parsing
	parsedOnce = 512             // bytes, after which the time is looked at
	maxNodes   = 500_000         // of the tree
	mostPages  = 2               // that are converted at a time
)

var errPage = errors.New("the page cannot be written as Markdown; ask with format text for its HTML")

// page is a page as Markdown. The error is fit for a model.
func (b *browser) page(ctx context.Context, text, domain string) (string, error) {
	select {
	case b.pages <- struct{}{}:
		defer func() { <-b.pages }()
	case <-ctx.Done():
		return "", errPage
	}
	limited, stop := context.WithTimeout(ctx, maxParse)
	defer stop()
	out, err := markdown(limited, text, domain)
	if err != nil {
		return "", errPage
	}
	return out, nil
}

// parsed is the tree of a page. It ends soon after ctx does, and its memory is bounded by that; the parser nests 512 deep, at most.
func parsed(ctx context.Context, page string) (*html.Node, error) {
	doc, err := html.Parse(&unhurried{ctx: ctx, from: strings.NewReader(page)})
	if err != nil {
		return nil, err
	}
	if nodes(doc, 0) > maxNodes {
		return nil, errPage
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
		return 0, errPage
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
