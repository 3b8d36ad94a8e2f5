package dispatcher

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/batches"
)

// Line is a line of a file.
type Line struct {
	Number int    // from 1
	Data   []byte // valid until the next line
	Long   bool   // it is longer than messages.MaxBatchLine, and Data is empty
}

// lineBuffer is what is read at once.
const lineBuffer = 64 << 10

// ReadLines yields the lines of JSONL that are not blank. Memory is bounded by the longest line that is allowed. An
// error of the reader, such as a body that was cut, comes instead of the line that it cut.
func ReadLines(r io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		in := bufio.NewReaderSize(r, lineBuffer)
		var data []byte
		for number := 1; ; number++ {
			var long bool
			var err error
			data, long, err = readLine(in, data[:0])
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Line{}, err)
				return
			}
			if number == 1 {
				data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
			}
			l := Line{Number: number, Data: bytes.TrimSpace(data), Long: long}
			if (long || len(l.Data) > 0) && !yield(l, nil) || err != nil {
				return
			}
		}
	}
}

// readLine appends a line to data, or skips one that is too long.
func readLine(in *bufio.Reader, data []byte) (_ []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			data = append(data, part...)
		}
		if len(data) > messages.MaxBatchLine {
			long, data = true, data[:0]
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return data, long, err
		}
	}
}

// storedLines are the lines that an earlier attempt has stored. As long as they are those of the file, they stay;
// from the first that is not, they are removed, so that what is stored has the order of the file.
type storedLines struct {
	from *batches.Store
	pull func() (batches.StoredLine, error, bool)
	stop func()
	over bool
}

func readStored(ctx context.Context, from *batches.Store, ref messages.BatchRef) *storedLines {
	s := &storedLines{from: from}
	s.pull, s.stop = iter.Pull2(from.Lines(ctx, ref, 0))
	return s
}

func (s *storedLines) close() { s.stop() }

// next reports whether the next line is stored.
func (s *storedLines) next(ctx context.Context, body []byte) (bool, error) {
	if s.over {
		return false, nil
	}
	line, err, more := s.pull()
	switch {
	case err != nil:
		return false, err
	case !more:
		s.over = true
		return false, nil
	case bytes.Equal(line.Body, body):
		return true, nil
	}
	if err := s.from.RemoveLine(ctx, line.Seq); err != nil {
		return false, fmt.Errorf("remove a line of an earlier attempt: %w", err)
	}
	return false, s.drop(ctx)
}

// drop removes the lines that are left.
func (s *storedLines) drop(ctx context.Context) error {
	for !s.over {
		line, err, more := s.pull()
		if err != nil {
			return err
		}
		if !more {
			s.over = true
			return nil
		}
		if err := s.from.RemoveLine(ctx, line.Seq); err != nil {
			return fmt.Errorf("remove a line of an earlier attempt: %w", err)
		}
	}
	return nil
}
