// Package markdown writes HTML as Markdown, for models to read. A page may come from anywhere: what it costs is bounded by its length and by
// the time that Convert is given.
package markdown

import (
	"context"
	"slices"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxIndented is how many lists and quotes a page may have inside each other. Each writes its whole content anew, with an indent: the
// 500 that a parser lets pass make a small page take minutes, and memory by the gigabyte.
const maxIndented = 8

const maxDigits = 6

// Page is a page as Markdown.
type Page struct{ Title, Text string }

// Convert writes a page as Markdown; links get the domain, such as https://example.com, in front of those that name none. It ends soon after ctx
// does with ErrPage. The conversion itself cannot be stopped, so that what it costs must be about the same for each byte. Characters
// that mean something in Markdown are not escaped: whether they do is found out by looking ahead, for each of them up to the end of the
// line, which takes minutes for a page of brackets; and a model reads them as well without.
func Convert(ctx context.Context, page, domain string) (Page, error) {
	doc, err := parsed(ctx, page)
	if err != nil {
		return Page{}, err
	}
	head := title(doc) // the conversion takes it out
	flatten(doc, 0)
	c := converter.NewConverter(
		converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin()),
	)
	out, err := c.ConvertNode(doc, converter.WithDomain(domain))
	return Page{head, string(out)}, err
}

// flatten makes plain blocks of lists and quotes that are too deep in others. Their text stays.
func flatten(n *html.Node, depth int) {
	if n.DataAtom == atom.Ul || n.DataAtom == atom.Ol || n.DataAtom == atom.Blockquote {
		if depth++; depth > maxIndented {
			n.DataAtom, n.Data = atom.Div, "div"
		}
		// The first number of a list, whose digits indent each of its lines.
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "start" && len(a.Val) > maxDigits })
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		flatten(c, depth)
	}
}
