package parts_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/command/memory/parts"
)

// reader is that of all tests: to compile what reads PDF files takes long.
var reader = parts.New()

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := reader.Close(); err != nil {
			panic(err)
		}
		os.Exit(code)
	}))
}

func texts(d parts.Document) (out []string) {
	for _, p := range d.Parts {
		out = append(out, p.Text)
	}
	return out
}

// A part says where it stands in its document. Headings in code are none.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	const text = "---\ntitle: \"Port manual\"\n---\n# Berths\n\nBerth 7 is closed.\n\n## Cranes ##\n\n### Crane 2\nIt lifts 40 t.\n```sh\n# no heading\n```\n" +
		"#hashtag\n\n## Fees\n\n\n# Tides\nTwice a day.\n"
	d, err := reader.Read(t.Context(), "docs/manual.md", []byte(text), parts.DefaultCut)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Port manual > Berths\n\nBerth 7 is closed.",
		"Port manual > Berths > Cranes > Crane 2\n\nIt lifts 40 t.\n```sh\n# no heading\n```\n#hashtag",
		"Port manual > Tides\n\nTwice a day.",
	}
	if diff := cmp.Diff(want, texts(d)); diff != "" || d.Title != "Port manual" {
		t.Errorf("%q %s", d.Title, diff)
	}
}

// What a document is follows from its name, and without one from its content.
func TestKinds(t *testing.T) {
	t.Parallel()
	wide := func(order binary.AppendByteOrder, s string) (out []byte) {
		for _, u := range utf16.Encode([]rune("\uFEFF" + s)) {
			out = order.AppendUint16(out, u)
		}
		return out
	}
	const page = "<html><head><title>Fees &amp; tolls</title><body><h2>Tugs</h2><p>A tug costs <b>90</b> an hour.<script>alert(1)</script>"
	for name, tc := range map[string]struct {
		file string
		data []byte
		want string
	}{
		"text":              {"notes.txt", []byte("# no heading\r\nA line.\x1b[31m\f"), "notes\n\n# no heading\nA line.[31m"},
		"byte order mark":   {"notes.txt", []byte("\uFEFFA line."), "notes\n\nA line."},
		"UTF-16, little":    {"notes.txt", wide(binary.LittleEndian, "Fähre"), "notes\n\nFähre"},
		"UTF-16, big":       {"notes", wide(binary.BigEndian, "Fähre"), "notes\n\nFähre"},
		"HTML":              {"fees.html", []byte(page), "Fees & tolls > Tugs\n\nA tug costs **90** an hour."},
		"HTML without name": {"stdin", []byte("<!DOCTYPE html>" + page), "Fees & tolls > Tugs\n\nA tug costs **90** an hour."},
		"HTML in Latin-1":   {"a.htm", []byte("<meta charset=iso-8859-1><title>a</title><p>F\xe4hre"), "a\n\nFähre"},
		"PDF":               {"berths.txt", pdf("(Ber) Tj (th 7) Tj", ""), "berths\n\nBerth 7"},
	} {
		d, err := reader.Read(t.Context(), tc.file, tc.data, parts.DefaultCut)
		if diff := cmp.Diff([]string{tc.want}, texts(d)); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// A page of a PDF file is a section.
func TestPages(t *testing.T) {
	t.Parallel()
	d, err := reader.Read(t.Context(), "a.pdf", pdf("(Berth 7) Tj", "", "(Crane 2) Tj"), parts.DefaultCut)
	want := []parts.Part{{Text: "a\n\nBerth 7", Page: 1}, {Text: "a\n\nCrane 2", Page: 3}}
	if diff := cmp.Diff(want, d.Parts); diff != "" || err != nil || d.Pages != 3 {
		t.Errorf("%v, %d pages, %s", err, d.Pages, diff)
	}
}

// Parts are no larger than they may be, nothing is lost between them, and each repeats the end of the one before.
func TestSizes(t *testing.T) {
	t.Parallel()
	var words []string
	for i := range 5000 {
		words = append(words, fmt.Sprintf("wört%d", i))
		switch {
		case i%97 == 0:
			words[i] += ".\n\n"
		case i%11 == 0:
			words[i] += "."
		}
	}
	text := strings.Join(words, " ")
	for _, tc := range []struct{ size, overlap string }{{"50", "0"}, {"50", "10"}, {"400", "50"}, {"6144", "3072"}, {"200c", "0"}, {"333c", "100c"}, {"24576c", "10"}} {
		var cut parts.Cut
		if err := cut.Size.Set(tc.size); err != nil {
			t.Fatal(err)
		}
		if err := cut.Overlap.Set(tc.overlap); err != nil {
			t.Fatal(err)
		}
		if err := cut.Check(); err != nil {
			t.Fatal(err)
		}
		d, err := reader.Read(t.Context(), "a.txt", []byte(text), cut)
		if err != nil {
			t.Fatal(err)
		}
		next, repeats := 0, 0
		for i, p := range d.Parts {
			body := strings.TrimPrefix(p.Text, "a\n\n")
			size, most := len(body), 4*cut.Size.N
			if cut.Size.Chars {
				size, most = utf8.RuneCountInString(body), cut.Size.N
			}
			if size > most || body == "" {
				t.Errorf("%+v: part %d has %d of %d", tc, i, size, most)
			}
			first := -1
			for w := range strings.FieldsSeq(body) {
				var n int
				if _, err := fmt.Sscanf(w, "wört%d", &n); err != nil {
					t.Fatalf("%+v: part %d cuts a word: %q", tc, i, w)
				}
				if first < 0 {
					if first = n; n < next {
						repeats++
					}
				}
				if n > next {
					t.Fatalf("%+v: part %d begins with %d, of %d before", tc, i, n, next)
				}
				next = max(next, n+1)
			}
		}
		if next != len(words) || (tc.overlap == "0") != (repeats == 0) {
			t.Errorf("%+v: %d of %d words in %d parts, of which %d repeat", tc, next, len(words), len(d.Parts), repeats)
		}
	}
}

func TestSizesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "c", "-1", "1.5", " 400", "400 ", "0400", "+400", "400x", "99999999999999999999", "400cc"} {
		var s parts.Size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
	for _, c := range []parts.Cut{{}, {Size: parts.Size{N: 49}}, {Size: parts.Size{N: 199, Chars: true}}, {Size: parts.Size{N: 7000}}, {Size: parts.Size{N: 100}, Overlap: parts.Size{N: 51}}} {
		if c.Check() == nil {
			t.Errorf("%+v passes", c)
		}
	}
}

// No document costs much more than it is long, and each error is one that a person can act on.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	fill := func(s string, n int) []byte { return bytes.Repeat([]byte(s), n/len(s)) }
	for name, tc := range map[string]struct {
		file string
		data []byte
		want string // of the error; empty: it is read
	}{
		"nothing":             {"a.md", nil, "is empty"},
		"only a heading":      {"a.md", []byte("# Berths\n"), "is empty"},
		"a picture":           {"a.md", []byte("\x89PNG\r\n\x1a\n\x00\x00"), "no text"},
		"NUL after a while":   {"a.txt", append(fill("a ", 20_000), 0), "no text"},
		"no UTF-8":            {"a.txt", []byte("F\xe4hre"), "neither UTF-8 nor UTF-16"},
		"no UTF-8 later":      {"a.txt", append(fill("a ", 20_000), 0xff), "neither UTF-8 nor UTF-16"},
		"half a character":    {"a.txt", []byte("a\xc3"), "neither UTF-8 nor UTF-16"},
		"half a surrogate":    {"a.txt", []byte{0xff, 0xfe, 0, 0xd8, 'a', 0, 'b'}, ""},
		"a long text":         {"a.txt", fill("long ", 17<<20), "more than 16777216 bytes of text"},
		"many parts":          {"a.txt", fill("a b. ", 15<<20), "more than 10000 parts: raise --chunk-size"},
		"no space":            {"a.txt", fill("a", 1<<20), ""},
		"headings":            {"a.md", fill("# a\n###### "+strings.Repeat("b", 1000)+"\nx\n", 1<<20), ""},
		"fences without end":  {"a.md", fill("```\n~~~\n", 1<<20), ""},
		"front matter":        {"a.md", append([]byte("---\n"), fill("title: a\n", 1<<20)...), ""},
		"long HTML":           {"a.html", fill("<p>a", 5<<20), "more than 4194304 bytes of HTML"},
		"HTML without end":    {"a.html", fill("<b><p>", 1<<20), "too large or too entangled"},
		"HTML with nothing":   {"a.html", []byte("<html>"), "is empty"},
		"no PDF":              {"a.pdf", []byte("%PDF-1.7\nnothing"), "cannot be read as PDF"},
		"PDF without text":    {"a.pdf", pdf("", ""), "its pages have no text"},
		"PDF of a cut stream": {"a.pdf", pdf("(Berth) Tj")[:200], "cannot be read as PDF"},
		"PDF in a loop":       {"a.pdf", bytes.ReplaceAll(pdf("(Berth) Tj"), []byte("/Kids [4 0 R"), []byte("/Kids [2 0 R")), "page 1 cannot be read"},
		"PDF of many pages":   {"a.pdf", pdf(make([]string, 5001)...), "has 5001 pages, and may have 5000"},
		"PDF with a bomb":     {"a.pdf", bomb(t), "page 1 cannot be read: it is damaged, or needs more than 512 MiB"},
		"PDF calls itself":    {"a.pdf", pdf("/Me Do (Berth) Tj"), ""},
	} {
		d, err := reader.Read(t.Context(), tc.file, tc.data, parts.DefaultCut)
		switch {
		case tc.want == "" && (err != nil || len(d.Parts) == 0):
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v and %d parts, want %q", name, err, len(d.Parts), tc.want)
		case err != nil && strings.ContainsAny(err.Error(), "\n\x00"):
			t.Errorf("%s: %q", name, err)
		}
		for _, p := range d.Parts {
			if len(p.Text) > 64<<10 || !utf8.ValidString(p.Text) || strings.ContainsAny(p.Text, "\x00\x1b") {
				t.Fatalf("%s: %.80q", name, p.Text)
			}
		}
	}
	d, err := reader.Read(t.Context(), "after.pdf", pdf("(Berth 7) Tj"), parts.DefaultCut)
	if err != nil || len(d.Parts) != 1 {
		t.Errorf("after all of them: %v", err)
	}
}
