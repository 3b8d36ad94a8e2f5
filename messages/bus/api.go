package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// APIPrefix is where JetStream takes requests. All but DIRECT.GET are answered by the leader.
const APIPrefix = "$JS.API."

// Call makes one request of the JetStream API, again while nobody answers. All requests of this package may be made
// twice. Both req and resp may be nil.
func (b *Bus) Call(ctx context.Context, subject string, req, resp any) error {
	return b.Retry(ctx, func(ctx context.Context) error { return b.callOnce(ctx, subject, req, resp) })
}

func (b *Bus) callOnce(ctx context.Context, subject string, req, resp any) error {
	if req == nil {
		return b.ask(ctx, subject, nil, resp)
	}
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	return b.ask(ctx, subject, body, resp)
}

// ask sends a request once.
func (b *Bus) ask(ctx context.Context, subject string, body []byte, resp any) error {
	m, err := b.nc.RequestWithContext(ctx, APIPrefix+subject, body)
	if err != nil {
		return err
	}
	if bytes.Contains(m.Data, []byte(`"error"`)) { // else it is not worth reading twice
		var failed struct {
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &failed); err != nil {
			return fmt.Errorf("decode answer: %w", err)
		}
		if failed.Error != nil {
			return failed.Error
		}
	}
	if resp == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, resp); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}

// Message is a message of a stream.
type Message struct {
	Subject string
	Seq     uint64
	Header  nats.Header
	Data    []byte
	Time    time.Time
}

// Lookup names one message: by its sequence, the next of a subject from a sequence or a time, or the last of a subject.
type Lookup struct {
	Seq   uint64     `json:"seq,omitempty"`
	Since *time.Time `json:"start_time,omitempty"`
	Next  string     `json:"next_by_subj,omitempty"`
	Last  string     `json:"last_by_subj,omitempty"`
}

// Get reads a message from the stream's leader; ok is false when there is none.
func (b *Bus) Get(ctx context.Context, stream string, at Lookup) (m Message, ok bool, err error) {
	err = b.Retry(ctx, func(ctx context.Context) error {
		m, ok, err = b.getOnce(ctx, stream, at)
		return err
	})
	return m, ok, err
}

func (b *Bus) getOnce(ctx context.Context, stream string, at Lookup) (Message, bool, error) {
	body, err := json.Marshal(at)
	if err != nil {
		return Message{}, false, fmt.Errorf("encode request: %w", err)
	}
	var resp struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	err = b.ask(ctx, "STREAM.MSG.GET."+stream, body, &resp)
	switch {
	case Refused(err, CodeNoMessage):
		return Message{}, false, nil
	case err != nil:
		return Message{}, false, err
	}
	m := Message{resp.Message.Subject, resp.Message.Seq, nil, resp.Message.Data, resp.Message.Time}
	if m.Seq == 0 {
		return Message{}, false, errors.New("decode answer: no sequence")
	}
	if len(resp.Message.Header) > 0 {
		if m.Header, err = nats.DecodeHeadersMsg(resp.Message.Header); err != nil {
			return Message{}, false, fmt.Errorf("decode headers of message %d: %w", m.Seq, err)
		}
	}
	return m, true, nil
}

// Clear removes every message of a subject.
func (b *Bus) Clear(ctx context.Context, stream, subject string) error {
	return b.Call(ctx, "STREAM.PURGE."+stream, struct {
		Filter string `json:"filter"`
	}{subject}, nil)
}

// Remove removes a message; that it is gone already is a success.
func (b *Bus) Remove(ctx context.Context, stream string, seq uint64) error {
	err := b.Call(ctx, "STREAM.MSG.DELETE."+stream, struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{seq, true}, nil)
	if Refused(err, CodeNoMessage) || Refused(err, CodeNotDeleted) {
		return nil
	}
	return err
}

// Has reports whether a stream has a message on a subject; its leader answers.
func (b *Bus) Has(ctx context.Context, stream, on string) (bool, error) {
	_, ok, err := b.Get(ctx, stream, Lookup{Last: on})
	return ok, err
}
