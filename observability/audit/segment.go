package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Names in the folder. A name of a chain is its path there.
const (
	headsChain   = "heads"
	tenantsChain = "tenants"
	extension    = ".jsonl"
	nameDigits   = 20
)

// chainOf is the chain of a tenant. Capitals are written so that names which differ in them alone do on every disk.
func chainOf(tenant string) string {
	var b strings.Builder
	for _, c := range []byte(tenant) {
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('+')
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return tenantsChain + "/" + b.String()
}

// tenantOf is the tenant of a chain; empty for the heads and what is none of ours.
func tenantOf(chain string) string {
	folder, ok := strings.CutPrefix(chain, tenantsChain+"/")
	if !ok {
		return ""
	}
	var b strings.Builder
	up := false
	for _, c := range []byte(folder) {
		switch {
		case c == '+' && !up:
			up = true
			continue
		case up && 'a' <= c && c <= 'z':
			c -= 'a' - 'A'
		case up, 'A' <= c && c <= 'Z':
			return ""
		}
		b.WriteByte(c)
		up = false
	}
	if up {
		return ""
	}
	return b.String()
}

func segmentName(first uint64) string { return fmt.Sprintf("%0*d%s", nameDigits, first, extension) }

// segments are the numbers of the first entries of a chain's files, in order. What is not named like one is not one.
func segments(dir, chain string) ([]uint64, error) {
	files, err := os.ReadDir(filepath.Join(dir, chain))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	var out []uint64
	for _, f := range files { // in the order of names
		name, ok := strings.CutSuffix(f.Name(), extension)
		if n, err := strconv.ParseUint(name, 10, 64); ok && err == nil && len(name) == nameDigits && n > 0 {
			out = append(out, n)
		}
	}
	return out, nil
}

// chains are the tenants' chains that have a folder, in order.
func chains(dir string) ([]string, error) {
	files, err := os.ReadDir(filepath.Join(dir, tenantsChain))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	var out []string
	for _, f := range files {
		if chain := tenantsChain + "/" + f.Name(); f.IsDir() && tenantOf(chain) != "" {
			out = append(out, chain)
		}
	}
	return out, nil
}

// line is one of a segment.
type line struct {
	chain   string
	segment uint64
	number  int   // from 1
	offset  int64 // where it begins
	text    []byte
	whole   bool // it has an end
}

func (l *line) file() string { return l.chain + "/" + segmentName(l.segment) }

// isTorn reports whether a line is what a kill or a loss of power leaves of one.
func (l *line) isTorn() bool { return !l.whole || len(bytes.Trim(l.text, "\x00\n")) == 0 }

// lines yields those of a segment. A text is good until the next one. One that is too long is cut.
func lines(dir, chain string, segment uint64) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		l := line{chain: chain, segment: segment}
		f, err := os.Open(filepath.Join(dir, chain, segmentName(segment)))
		if err != nil {
			yield(l, fmt.Errorf("read segment: %w", err))
			return
		}
		defer f.Close()
		const buffer = 64 << 10
		r := bufio.NewReaderSize(f, buffer)
		var text []byte
		for {
			text = text[:0]
			size := 0
			part, err := r.ReadSlice('\n')
			for ; errors.Is(err, bufio.ErrBufferFull); part, err = r.ReadSlice('\n') {
				size += len(part)
				text = append(text, part[:min(len(part), maxLine-len(text))]...)
			}
			size += len(part)
			text = append(text, part[:min(len(part), maxLine-len(text))]...)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(l, fmt.Errorf("read %s: %w", l.file(), err))
				return
			}
			if size == 0 {
				return
			}
			l.number++
			l.text, l.whole = text, err == nil
			if !yield(l, nil) || err != nil {
				return
			}
			l.offset += int64(size)
		}
	}
}
