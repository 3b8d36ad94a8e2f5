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

// apiPrefix is where JetStream takes requests. All but DIRECT.GET are answered by the leader.
const apiPrefix = "$JS.API."

// call makes one request of the JetStream API, again while nobody answers. All requests of this package may be made
// twice. Both req and resp may be nil.
func (b *Bus) call(ctx context.Context, subject string, req, resp any) error {
	return b.retry(ctx, func(ctx context.Context) error { return b.callOnce(ctx, subject, req, resp) })
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
	m, err := b.nc.RequestWithContext(ctx, apiPrefix+subject, body)
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

// stored is a message of a stream.
type stored struct {
	subject string
	seq     uint64
	header  nats.Header
	data    []byte
	time    time.Time
}

// lookup names one message: by its sequence, the next of a subject from a sequence or a time, or the last of a subject.
type lookup struct {
	Seq   uint64     `json:"seq,omitempty"`
	Since *time.Time `json:"start_time,omitempty"`
	Next  string     `json:"next_by_subj,omitempty"`
	Last  string     `json:"last_by_subj,omitempty"`
}

// get reads a message from the stream's leader; ok is false when there is none.
func (b *Bus) get(ctx context.Context, stream string, at lookup) (m stored, ok bool, err error) {
	err = b.retry(ctx, func(ctx context.Context) error {
		m, ok, err = b.getOnce(ctx, stream, at)
		return err
	})
	return m, ok, err
}

func (b *Bus) getOnce(ctx context.Context, stream string, at lookup) (stored, bool, error) {
	body, err := json.Marshal(at)
	if err != nil {
		return stored{}, false, fmt.Errorf("encode request: %w", err)
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
	case refused(err, codeNoMessage):
		return stored{}, false, nil
	case err != nil:
		return stored{}, false, err
	}
	m := stored{resp.Message.Subject, resp.Message.Seq, nil, resp.Message.Data, resp.Message.Time}
	if m.seq == 0 {
		return stored{}, false, errors.New("decode answer: no sequence")
	}
	if len(resp.Message.Header) > 0 {
		if m.header, err = nats.DecodeHeadersMsg(resp.Message.Header); err != nil {
			return stored{}, false, fmt.Errorf("decode headers of message %d: %w", m.seq, err)
		}
	}
	return m, true, nil
}

// purge removes every message of a subject.
func (b *Bus) purge(ctx context.Context, stream, subject string) error {
	return b.call(ctx, "STREAM.PURGE."+stream, struct {
		Filter string `json:"filter"`
	}{subject}, nil)
}
