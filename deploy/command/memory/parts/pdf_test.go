package parts_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/command/memory/parts"
)

// pdf is a file with a page for each text, in the operators of PDF. A page may show itself as /Me.
func pdf(pages ...string) []byte {
	var streams [][]byte
	for _, p := range pages {
		streams = append(streams, fmt.Appendf(nil, "<< /Length %d >>\nstream\n%s\nendstream", len(p)+22, "BT /F1 12 Tf 9 9 Td\n"+p+" ET"))
	}
	return withStreams(streams...)
}

func withStreams(streams ...[]byte) []byte {
	var out bytes.Buffer
	var at []int
	object := func(body []byte) {
		at = append(at, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(at), body)
	}
	out.WriteString("%PDF-1.7\n")
	object([]byte("<< /Type /Catalog /Pages 2 0 R >>"))
	var kids []byte
	for i := range streams {
		kids = fmt.Appendf(kids, "%d 0 R ", 4+2*i)
	}
	// The first page is object 4; 3 is the font.
	object(fmt.Appendf(nil, "<< /Type /Pages /Kids [%s] /Count %d >>", kids, len(streams)))
	object([]byte("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"))
	for i, s := range streams {
		object(fmt.Appendf(nil, "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> /XObject << /Me %d 0 R >> >> >>", 5+2*i, 5+2*i))
		object(s)
	}
	xref := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&out, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, xref)
	return out.Bytes()
}

// bomb is a file of few megabytes whose page has gigabytes: the same packed block again and again.
func bomb(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	w, err := zlib.NewWriterLevel(&packed, zlib.BestCompression)
	if err == nil {
		_, err = w.Write(bytes.Repeat([]byte("(a) Tj "), 1<<20/7))
	}
	if err := errors.Join(err, w.Flush()); err != nil {
		t.Fatal(err)
	}
	const head = 2 // bytes before the first block
	block := bytes.Clone(packed.Bytes()[head:])
	for range 2047 {
		packed.Write(block)
	}
	return withStreams(fmt.Appendf(nil, "<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream", packed.Len(), packed.Bytes()))
}

// Reading ends with its context, in the middle of a file that takes long, and the next file is read as if nothing had been.
func TestReadingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	if _, err := reader.Read(t.Context(), "a.pdf", pdf("(Berth) Tj"), parts.DefaultCut); err != nil { // the program is compiled
		t.Fatal(err)
	}
	stop := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, stop)
	defer cancel()
	slow := pdf(string(bytes.Repeat([]byte("(Berth) Tj 1 1 Td "), 300_000)))
	if _, err := reader.Read(ctx, "slow.pdf", slow, parts.DefaultCut); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if d, err := reader.Read(t.Context(), "a.pdf", pdf("(Berth) Tj"), parts.DefaultCut); err != nil || len(d.Parts) != 1 {
		t.Errorf("after it: %v", err)
	}
}
