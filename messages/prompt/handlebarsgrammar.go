package prompt

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/mailgun/raymond/v2/lexer"
)

// checkHandlebars reports what the library's parser would refuse. The parser leaves the goroutine of its lexer behind, with the text, when it refuses
// a template before its end; a lexer that is asked for all tokens ends. What passes here the parser reads to the end. What it reads and
// parseHandlebars refuses may be refused here.
func checkHandlebars(text string) error {
	g := grammar{tokens: lexer.Collect(text)}
	for g.kind() != lexer.TokenEOF {
		if err := g.statement(); err != nil {
			return g.failed(err)
		}
	}
	if len(g.open) > 0 {
		return g.failed(fmt.Errorf("{{#%s}} is not closed", g.last().name))
	}
	return nil
}

// badLine is how the library begins its own errors.
const badLine = "Parse error on line"

// failed says in which line the look at the tokens is.
func (g *grammar) failed(err error) error {
	return fmt.Errorf("%s %d:\n%w", badLine, g.next().Line, err)
}

// grammar is where a look at the tokens is. The last token is TokenEOF or TokenError.
type grammar struct {
	tokens []lexer.Token
	open   []openBlock
}

// openBlock is a block that is not closed.
type openBlock struct {
	name    string // as it is written
	chained bool   // it may have another {{else if …}}
	divided bool   // it has its {{else}}
}

// last is the block that is closed first. There must be one.
func (g *grammar) last() *openBlock { return &g.open[len(g.open)-1] }

func (g *grammar) next() lexer.Token { return g.tokens[0] }

func (g *grammar) kind() lexer.TokenKind { return g.tokens[0].Kind }

// skip passes over a token of a kind.
func (g *grammar) skip(kind lexer.TokenKind) error {
	t := g.next()
	switch {
	case t.Kind == lexer.TokenError:
		return errors.New(t.Val)
	case t.Kind != kind:
		return fmt.Errorf("%s where %s is expected", t.Kind, kind)
	}
	g.tokens = g.tokens[1:]
	return nil
}

// statement is content, a comment, a value, or a tag that begins, divides or ends a block.
func (g *grammar) statement() error {
	switch kind := g.kind(); kind {
	case lexer.TokenContent, lexer.TokenComment:
		return g.skip(kind)
	case lexer.TokenOpen, lexer.TokenOpenPartial:
		return g.tag(kind, lexer.TokenClose)
	case lexer.TokenOpenUnescaped:
		return g.tag(kind, lexer.TokenCloseUnescaped)
	case lexer.TokenOpenBlock, lexer.TokenOpenInverse:
		return g.block(kind)
	case lexer.TokenInverse, lexer.TokenOpenInverseChain:
		return g.otherwise(kind)
	case lexer.TokenOpenEndBlock:
		return g.end()
	case lexer.TokenError:
		return g.skip(lexer.TokenContent)
	default:
		return fmt.Errorf("%s is not supported here", kind)
	}
}

// tag is an expression between two tokens.
func (g *grammar) tag(opens, closes lexer.TokenKind) error {
	if err := g.skip(opens); err != nil {
		return err
	}
	if opens == lexer.TokenOpenPartial && g.kind() == lexer.TokenOpenSexpr {
		if err := g.param(); err != nil {
			return err
		}
		if err := g.params(); err != nil {
			return err
		}
		return g.skip(closes)
	}
	if err := g.expression(); err != nil {
		return err
	}
	return g.skip(closes)
}

// block is the tag that begins one.
func (g *grammar) block(kind lexer.TokenKind) error {
	if err := g.skip(kind); err != nil {
		return err
	}
	name, err := g.name()
	if err != nil {
		return err
	}
	if err := g.params(); err != nil {
		return err
	}
	if g.kind() == lexer.TokenOpenBlockParams {
		if err := g.skip(lexer.TokenOpenBlockParams); err != nil {
			return err
		}
		for first := true; first || g.kind() == lexer.TokenID; first = false {
			if err := g.skip(lexer.TokenID); err != nil {
				return err
			}
		}
		if err := g.skip(lexer.TokenCloseBlockParams); err != nil {
			return err
		}
	}
	g.open = append(g.open, openBlock{name: name, chained: kind == lexer.TokenOpenBlock})
	return g.skip(lexer.TokenClose)
}

// otherwise is {{else}} within a block, or {{else if …}}.
func (g *grammar) otherwise(kind lexer.TokenKind) error {
	if len(g.open) == 0 || g.last().divided || kind == lexer.TokenOpenInverseChain && !g.last().chained {
		return fmt.Errorf("%s is not supported here", kind)
	}
	if kind == lexer.TokenInverse {
		g.last().divided = true
		return g.skip(kind)
	}
	return g.tag(kind, lexer.TokenClose)
}

// end is the tag that ends a block, with its name.
func (g *grammar) end() error {
	if err := g.skip(lexer.TokenOpenEndBlock); err != nil {
		return err
	}
	name, err := g.name()
	if err != nil {
		return err
	}
	if len(g.open) == 0 {
		return fmt.Errorf("{{/%s}} ends no block", name)
	}
	if open := g.last().name; open != name {
		return fmt.Errorf("{{/%s}} where {{/%s}} is expected", name, open)
	}
	g.open = g.open[:len(g.open)-1]
	return g.skip(lexer.TokenClose)
}

// expression is a name and what it is given.
func (g *grammar) expression() error {
	if _, err := g.name(); err != nil {
		return err
	}
	return g.params()
}

// params are values, and then values with names.
func (g *grammar) params() error {
	named := false
	for {
		switch g.kind() {
		case lexer.TokenBoolean, lexer.TokenNumber, lexer.TokenString, lexer.TokenData, lexer.TokenID, lexer.TokenOpenSexpr:
		default:
			return nil
		}
		if g.kind() == lexer.TokenID && g.tokens[1].Kind == lexer.TokenEquals {
			g.tokens, named = g.tokens[2:], true
		} else if named {
			return nil // no part of it: what follows is expected to be the end
		}
		if err := g.param(); err != nil {
			return err
		}
	}
}

// param is a name, or an expression in parentheses. How deep these are bounds the stack of the library too.
func (g *grammar) param() error {
	if g.kind() != lexer.TokenOpenSexpr {
		_, err := g.name()
		return err
	}
	if err := g.skip(lexer.TokenOpenSexpr); err != nil {
		return err
	}
	if err := g.expression(); err != nil {
		return err
	}
	return g.skip(lexer.TokenCloseSexpr)
}

// name is a literal or a path, and returned as the library compares it: a path without the @ of data, a number in one form.
func (g *grammar) name() (string, error) {
	t := g.next()
	switch t.Kind {
	case lexer.TokenBoolean, lexer.TokenString:
		return t.Val, g.skip(t.Kind)
	case lexer.TokenNumber:
		if _, err := strconv.ParseFloat(t.Val, 64); err != nil {
			return "", fmt.Errorf("%q is no number", t.Val)
		}
		return t.Val, g.skip(t.Kind)
	case lexer.TokenData:
		if err := g.skip(t.Kind); err != nil {
			return "", err
		}
		path, err := g.path()
		return "@" + path, err
	default:
		return g.path()
	}
}

func (g *grammar) path() (string, error) {
	path := g.next().Val
	if err := g.skip(lexer.TokenID); err != nil {
		return "", err
	}
	plain := !isContext(path) // whether a part has a name
	for g.kind() == lexer.TokenSep {
		path += g.next().Val
		if err := g.skip(lexer.TokenSep); err != nil {
			return "", err
		}
		id := g.next().Val
		path += id
		if err := g.skip(lexer.TokenID); err != nil {
			return "", err
		}
		if plain = plain || !isContext(id); plain && isContext(id) {
			return "", fmt.Errorf("%s is not a path", path)
		}
	}
	return path, nil
}

// isContext reports whether a part of a path stands for the value around.
func isContext(id string) bool { return id == "." || id == ".." || id == "this" }
