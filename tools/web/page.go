package web

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-run/longshore/tools/web/markdown"
)

// Limits of a page that is converted. A parser makes a tree of 300 MiB of 24 kB in which bold text is never closed: it opens all of it
// anew in each paragraph.
const (
	maxParse  = 2 * time.Second // of parsing
	mostPages = 2               // that are converted at a time
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
	page, err := markdown.Convert(limited, text, domain)
	if err != nil {
		return "", errPage
	}
	return page.Text, nil
}
