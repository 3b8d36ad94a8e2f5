package httpstream

import (
	"io"
	"net/http"
	"sync"
)

// beginLate makes a request ask begin at the last moment: when its body is read for the first time, right before that is
// written to the connection. An error of begin ends the request and its connection; a server has seen headers at most.
func beginLate(req *http.Request, begin func() error) {
	if begin == nil || req.Body == nil {
		return
	}
	req.Body = &late{ReadCloser: req.Body, begin: begin}
	if again := req.GetBody; again != nil { // for an attempt on another connection
		req.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return &late{ReadCloser: body, begin: begin}, nil
		}
	}
}

// late is a body that asks before its first byte.
type late struct {
	io.ReadCloser

	begin func() error
	once  sync.Once
	err   error
}

func (l *late) Read(p []byte) (int, error) {
	l.once.Do(func() { l.err = l.begin() })
	if l.err != nil {
		return 0, l.err
	}
	return l.ReadCloser.Read(p)
}
