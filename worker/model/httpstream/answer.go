package httpstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/longshore-run/longshore/worker/model"
)

const bom = "\xef\xbb\xbf"

// Answer looks at the first byte of the answer, since headers cannot be trusted to say what comes. It returns either the
// events of a stream, or all of an answer that is not a stream: JSON in one piece or a web page. The error is io.EOF when the
// answer is empty, and otherwise one for Failure.
func (c *Call) Answer() (*Events, []byte, error) {
	src, limit := bufio.NewReader(c), c.client.config.MaxLine
	first, err := firstByte(src)
	if err != nil {
		return nil, nil, err
	}
	if first != '{' && first != '[' && first != '<' {
		return &Events{lines: lines{source: src, max: limit}, max: limit, lenient: c.client.config.Lenient}, nil, nil
	}
	whole, err := io.ReadAll(io.LimitReader(src, int64(limit)+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(whole) > limit:
		return nil, nil, tooLarge("the reply", int64(limit))
	case cutJSON(whole):
		return nil, nil, &model.Error{Class: model.Truncated, Detail: "the answer was cut within its JSON"}
	}
	return nil, whole, nil
}

// cutJSON reports whether data is the beginning of a JSON value and lacks its end.
func cutJSON(data []byte) bool {
	err := json.NewDecoder(bytes.NewReader(data)).Decode(new(json.RawMessage))
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// firstByte skips a byte order mark and white space.
func firstByte(r *bufio.Reader) (byte, error) {
	if c, err := r.Peek(1); err == nil && c[0] == bom[0] {
		if start, err := r.Peek(len(bom)); err == nil && string(start) == bom {
			_, _ = r.Discard(len(bom)) // just peeked at
		}
	}
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, r.UnreadByte()
		}
	}
}
