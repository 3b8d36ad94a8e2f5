package anthropic

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/longshore-run/longshore/worker/model"
)

// read reads the answer up to message_stop. Whatever else ends it is an error.
func (x *exchange) read(a *assembly, yield func(model.Delta, error) bool) error {
	events, whole, err := x.Answer()
	switch {
	case errors.Is(err, io.EOF):
		return truncated("the answer is empty")
	case err != nil:
		return err
	case whole != nil:
		return x.whole(whole, a, yield)
	}
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return truncated("the stream ended before message_stop")
		case err != nil:
			return err
		case string(ev.Data) == "[DONE]" || string(ev.Data) == `""`: // ornaments of gateways
			continue
		}
		e, err := parseEvent(ev.Name, ev.Data)
		if err != nil {
			if _, half := errors.AsType[*json.SyntaxError](err); half && ev.Last {
				return truncated("the stream was cut within an event")
			}
			return garbled("the answer cannot be read: %v", err)
		}
		if e.Type == errorEvent {
			return x.failure(parseFault(ev.Data))
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
func (x *exchange) whole(data []byte, a *assembly, yield func(model.Delta, error) bool) error {
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
