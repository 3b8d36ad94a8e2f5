package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Stream reads and clears one stream. It is a small value: [Bus.Stream] asks the server nothing, and a stream that does not
// exist shows as an error of the methods.
type Stream struct {
	bus  *Bus
	name string
}

// Stream returns the stream of a name.
func (b *Bus) Stream(name string) Stream { return Stream{b, name} }

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

// Get reads a message from the stream's leader; ok is false if there is no such message.
func (s Stream) Get(ctx context.Context, at Lookup) (m Message, ok bool, err error) {
	err = s.bus.Retry(ctx, func(ctx context.Context) error {
		m, ok, err = s.GetOnce(ctx, at)
		return err
	})
	return m, ok, err
}

// GetOnce is Get without retries; the caller bounds the wait with ctx.
func (s Stream) GetOnce(ctx context.Context, at Lookup) (Message, bool, error) {
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
	err = s.bus.ask(ctx, "STREAM.MSG.GET."+s.name, body, &resp)
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

// Near is Get from whichever replica answers, which may not have what was stored some milliseconds ago. It takes the server less time than the
// same answer of a leader. Who may not ask for messages as they are asks the leader.
func (s Stream) Near(ctx context.Context, at Lookup) (Message, bool, error) {
	if s.bus.direct {
		if m, ok := s.near(ctx, at); ok {
			return m, true, nil
		}
	}
	return s.Get(ctx, at)
}

// near is one request; false: the leader is to be asked.
func (s Stream) near(ctx context.Context, at Lookup) (Message, bool) {
	body, err := json.Marshal(at)
	if err != nil {
		return Message{}, false
	}
	answer, err := s.bus.answers.ask(ctx, &nats.Msg{Subject: APIPrefix + "DIRECT.GET." + s.name, Data: body}, s.bus.answer)
	if err != nil || answer.Header.Get(StatusHeader) != "" {
		return Message{}, false
	}
	m, err := direct(answer)
	return m, err == nil
}

// Clear removes every message of a subject.
func (s Stream) Clear(ctx context.Context, subject string) error {
	return s.bus.Call(ctx, "STREAM.PURGE."+s.name, struct {
		Filter string `json:"filter"`
	}{subject}, nil)
}

// Remove removes a message. It succeeds if the message is gone already.
func (s Stream) Remove(ctx context.Context, seq uint64) error { return s.remove(ctx, seq, true) }

// Erase is Remove, and has the servers overwrite on their disks what they stored of the message.
func (s Stream) Erase(ctx context.Context, seq uint64) error { return s.remove(ctx, seq, false) }

func (s Stream) remove(ctx context.Context, seq uint64, leave bool) error {
	err := s.bus.Call(ctx, "STREAM.MSG.DELETE."+s.name, struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{seq, leave}, nil)
	if Refused(err, CodeNoMessage) || Refused(err, CodeNotDeleted) || Refused(err, codeNoSequence) {
		return nil
	}
	return err
}

// Has reports whether the stream has a message on a subject. What was stored some milliseconds ago may be missing, for a replica
// may say no. Yes is what the stream's leader says.
func (s Stream) Has(ctx context.Context, on string) (bool, error) {
	if s.bus.direct && s.lacks(ctx, on) {
		return false, nil
	}
	_, ok, err := s.Get(ctx, Lookup{Last: on})
	return ok, err
}

// lacks reports whether a replica says that the stream has nothing on a subject. That costs the server half as much as the same
// answer of a leader, and nearly every id of a task is new.
func (s Stream) lacks(ctx context.Context, on string) bool {
	ctx, cancel := context.WithTimeout(ctx, s.bus.answer)
	defer cancel()
	m, err := s.bus.nc.RequestWithContext(ctx, APIPrefix+"DIRECT.GET."+s.name+"."+on, nil)
	return err == nil && m.Header.Get(StatusHeader) == StatusNone
}

// Subjects yields the subjects of the stream that match a filter and hold a message, sorted within a page. An error ends it.
func (s Stream) Subjects(ctx context.Context, filter string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for offset := 0; ; {
			req := struct {
				Filter string `json:"subjects_filter"`
				Offset int    `json:"offset"`
			}{filter, offset}
			var info struct {
				Total int `json:"total"`
				State struct {
					Subjects map[string]uint64 `json:"subjects"`
				} `json:"state"`
			}
			if err := s.bus.Call(ctx, "STREAM.INFO."+s.name, req, &info); err != nil {
				yield("", err)
				return
			}
			for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
				if !yield(subject, nil) {
					return
				}
			}
			offset += len(info.State.Subjects)
			if len(info.State.Subjects) == 0 || offset >= info.Total {
				return
			}
		}
	}
}

// Count returns how many messages have subjects that match a filter. It asks for the first one: the server says how many follow.
func (s Stream) Count(ctx context.Context, filter string) (n int, err error) {
	body, err := json.Marshal(struct {
		Seq   uint64 `json:"seq"`
		Next  string `json:"next_by_subj"`
		Batch int    `json:"batch"`
	}{1, filter, 1})
	if err != nil {
		return 0, fmt.Errorf("encode request: %w", err)
	}
	err = s.bus.Retry(ctx, func(ctx context.Context) error {
		in, err := OpenInbox(s.bus.nc, AnswerRoom)
		if err != nil {
			return err
		}
		defer in.Close()
		if err := s.bus.nc.PublishRequest(APIPrefix+"DIRECT.GET."+s.name, in.Sub.Subject, body); err != nil {
			return err
		}
		m, err := in.Next(ctx, s.bus.answer)
		if err != nil {
			return err
		}
		switch status := m.Header.Get(StatusHeader); status {
		case "":
			n, err = strconv.Atoi(m.Header.Get("Nats-Num-Pending"))
			n++ // the first
			return err
		case StatusNone:
			n = 0
			return nil
		case StatusNoResponders:
			return nats.ErrNoResponders
		default:
			return fmt.Errorf("status %s", status)
		}
	})
	return n, err
}
