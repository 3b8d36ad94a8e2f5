package prompt

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mailgun/raymond/v2/parser"
)

// right are templates that the library reads.
var right = []string{
	"", "plain", "{{! a comment }}x", "{{a}}", "{{{a}}}", "{{&a}}", "{{a.b.c}}", "{{@root.a}}", "{{this}}", "{{../a}}", "{{../../a.b}}",
	"{{this.a}}", "{{./a}}", "{{lookup a 'b'}}", "{{lookup (lookup a 1) 1}}", "{{lookup a b=1 c=(d e)}}", "{{a 1.5 true 'x' \"y\" @z}}",
	"{{'a'}}", "{{1}}", "{{true}}", "{{#if a}}x{{/if}}", "{{#if a}}x{{else}}y{{/if}}", "{{#if a}}x{{^}}y{{/if}}",
	"{{#if a}}x{{else if b}}y{{else}}z{{/if}}", "{{#if a}}{{#if b}}{{/if}}{{else}}{{#if c}}{{/if}}{{/if}}",
	"{{#each a as |b|}}{{b}}{{/each}}", "{{#each a as |b c|}}{{/each}}", "{{^if a}}x{{/if}}", "{{^if a}}x{{else}}y{{/if}}",
	"{{^if a}}x{{^}}y{{/if}}", "{{#''}}{{/''}}", "{{#@a}}{{/@a}}", "a}}", "{{> a}}", "{{> (a b) c d=1}}", "{{> a b=1}}", "\\{{a}}",
	"{{~a~}}", "{{~#if a~}}x{{~/if~}}", "{{[a b]}}", "{{a.[b c]}}", "{{!-- {{a}} --}}", "{{a.}}", "{{.}}", "{{..}}", "{{a\n}}", "{{\x00}}",
	"{{é}}", "{{a b=(c d=(e f)) g=1}}",
}

// wrong are those that it refuses, some of them long before their end, and raw blocks, which have no use here.
var wrong = []string{
	"{{a.this}}", "{{a/../b}}", "{{a b=1 c}}", "{{a 1..5}}", "{{a=b}}", "{{=}}", "{{#if a}}x{{else}}y{{else}}z{{/if}}",
	"{{#if a}}x{{else}}y{{else if b}}z{{/if}}", "{{#each a as ||}}{{/each}}", "{{^if a}}x{{else if b}}y{{/if}}", "{{#if a}}",
	"{{#if a}}x{{/each}}", "{{/if}}", "{{else}}", "{{^}}", "{{#if a}}b {{/each}}{{c}}", "{{#}}", "{{/}}", "{{a", "{{a}", "{{a}}}",
	"{{{a}}", "{{#if a}x", "{{a 'b}}", "{{a (b}}", "{{a b)}}", "{{()}}", "{{>}}", "{{{{raw}}}}x{{{{/raw}}}}", "{{{{raw}}}}", "{{!--",
	"{{*a}}", "{{#if a}}x{{/if}} {{/if}} {{b}} {{c}}", strings.Repeat("{{#if a}}", 50), "\n\n{{#if a}}\n{{/each}}\n",
}

// What passes the check the parser takes, so that its lexer never stays behind.
func TestCheckHandlebars(t *testing.T) {
	for _, text := range right {
		if err := checkHandlebars(text); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if _, err := parser.Parse(text); err != nil {
			t.Errorf("%q passes, but the parser says: %v", text, err)
		}
	}
	for _, text := range wrong {
		if err := checkHandlebars(text); err == nil || !strings.HasPrefix(err.Error(), "Parse error on line ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A template that is refused leaves nothing behind.
func TestWrongTemplatesLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 200 {
		for _, text := range wrong {
			if _, err := parseHandlebars(text); err == nil {
				t.Fatalf("%q is taken", text)
			}
		}
	}
	for range 1000 { // lexers that have sent their last token are about to end
		if runtime.NumGoroutine() <= before+10 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, before %d", runtime.NumGoroutine(), before)
}

func FuzzCheckHandlebars(f *testing.F) {
	for _, text := range slices.Concat(right, wrong) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkHandlebars(text) == nil {
			if _, err := parser.Parse(text); err != nil {
				t.Errorf("%q passes, but the parser says: %v", text, err)
			}
		}
	})
}
