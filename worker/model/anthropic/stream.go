package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/wire"
)

// read reads the answer up to message_stop. Whatever else ends it is an error.
func (x *exchange) read(a *assembly, yield func(model.Delta, error) bool) error {
	src := bufio.NewReader(x)
	first, err := firstByte(src) // headers cannot be trusted to say what comes
	switch {
	case errors.Is(err, io.EOF):
		return truncated("the answer is empty")
	case err != nil:
		return err
	case first == '{' || first == '[' || first == '<':
		return x.whole(src, a, yield)
	}
	limit := x.provider.config.MaxLine
	stream := events{lines: wire.Lines{Source: src, Max: limit}, maxLine: limit}
	for {
		name, data, ended, err := stream.next()
		switch {
		case errors.Is(err, io.EOF) && !stream.known && stream.strange != "":
			return garbled("the answer is no event stream: %s", stream.strange)
		case errors.Is(err, io.EOF):
			return truncated("the stream ended before message_stop")
		case err != nil:
			return err
		case string(data) == "[DONE]" || string(data) == `""`: // ornaments of gateways
			continue
		}
		e, err := parseEvent(name, data)
		if err != nil {
			if _, half := errors.AsType[*json.SyntaxError](err); half && ended {
				return truncated("the stream was cut within an event")
			}
			return garbled("the answer cannot be read: %v", err)
		}
		if e.Type == errorEvent {
			return x.failure(parseFault(data))
		}
		done, err := a.add(e, yield)
		if err != nil {
			return err
		}
		if done && a.reason == "" {
			return truncated("the reply does not say why it ended")
		}
		if done {
			return nil
		}
	}
}

// whole reads an answer that is no stream: a reply in one piece, an error, or a web page.
func (x *exchange) whole(src io.Reader, a *assembly, yield func(model.Delta, error) bool) error {
	limit := x.provider.config.MaxLine
	data, err := io.ReadAll(io.LimitReader(src, int64(limit)+1))
	switch {
	case err != nil:
		return err
	case len(data) > limit:
		return tooLarge("the reply", int64(limit))
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(new(json.RawMessage)); errors.Is(err, io.ErrUnexpectedEOF) {
		return truncated("the answer was cut within its JSON")
	}
	var head struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &head); err != nil || head.Type != "message" || len(head.Error) > 0 && string(head.Error) != "null" {
		e := x.failure(parseFault(data))
		if e.Class == model.Unknown {
			e.Class = model.ModelOutput
		}
		return e
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return garbled("the answer cannot be read: %v", err)
	}
	if m.StopReason == "" {
		return truncated("the reply does not say that it is complete")
	}
	return a.whole(&m, yield)
}
