//go:build amd64 || arm64

package process

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// streams are the pipes to and from a program.
type streams struct {
	theirs [3]*os.File
	input  *os.File // nil: none
	output [2]*os.File
	text   []byte // for the input
	work   sync.WaitGroup
	stop   chan struct{}
}

// part is a piece of what a program wrote.
type part struct {
	stream Stream
	text   []byte
}

func openStreams(stdin []byte) (s *streams, err error) {
	s = &streams{text: stdin, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			s.closeTheirs()
			s.close()
			err = fmt.Errorf("open pipes: %w", err)
		}
	}()
	if stdin == nil {
		s.theirs[0], err = os.Open(os.DevNull)
	} else {
		s.theirs[0], s.input, err = os.Pipe()
	}
	if err != nil {
		return s, err
	}
	for i := range s.output {
		if s.output[i], s.theirs[i+1], err = os.Pipe(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *streams) closeTheirs() {
	for i, f := range s.theirs {
		if f != nil {
			_ = f.Close()
			s.theirs[i] = nil
		}
	}
}

// read writes the input and reads the output, until all of it is closed.
func (s *streams) read() <-chan part {
	parts := make(chan part)
	var readers sync.WaitGroup
	for i, f := range s.output {
		readers.Go(func() { s.copy(f, Stream(i+1), parts) })
	}
	s.work.Go(func() {
		readers.Wait()
		close(parts)
	})
	if s.input != nil {
		s.work.Go(func() {
			_, _ = s.input.Write(s.text) // the program need not read it
			_ = s.input.Close()
		})
	}
	return parts
}

func (s *streams) copy(f *os.File, stream Stream, to chan<- part) {
	for {
		b := make([]byte, 16<<10)
		n, err := f.Read(b)
		if n > 0 {
			select {
			case to <- part{stream, b[:n]}:
			case <-s.stop:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// endWithin bounds how long the pipes may stay open.
func (s *streams) endWithin(d time.Duration) {
	for _, f := range s.output {
		_ = f.SetReadDeadline(time.Now().Add(d))
	}
	if s.input != nil {
		_ = s.input.SetWriteDeadline(time.Unix(1, 0))
	}
}

// close ends what read started.
func (s *streams) close() {
	close(s.stop)
	for _, f := range []*os.File{s.input, s.output[0], s.output[1]} {
		if f != nil {
			_ = f.Close()
		}
	}
	s.work.Wait()
}
