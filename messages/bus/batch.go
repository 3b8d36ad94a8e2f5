package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Sizes of a page. The first is small, for many readers want a run's first entry or a short log.
const (
	FirstPage = 64
	NextPages = 512
	PageBytes = 4 << 20
)

// headerPending says how many messages match beyond the one that carries it.
const headerPending = "Nats-Num-Pending"

// Statuses of answers without a message.
const (
	StatusHeader       = "Status"
	statusEnd          = "204"
	StatusNone         = "404"
	StatusNoResponders = "503"
	statusIdle         = "100"
	StatusTimeout      = "408"
)

// Page asks for messages of a subject, oldest first.
type Page struct {
	Seq   uint64     `json:"seq,omitempty"`
	Since *time.Time `json:"start_time,omitempty"`
	Next  string     `json:"next_by_subj"`
	Batch int        `json:"batch"`
	Bytes int        `json:"max_bytes"`
}

// StartTime is a time that the message store can count: it takes nanoseconds since 1970, in which a time before 1678 or after
// 2262 is quite another one. Nothing was stored before 1970 or will be after 2262, so what is asked for stays the same.
func StartTime(t time.Time) *time.Time {
	first, last := time.Unix(0, 0), time.Unix(0, math.MaxInt64)
	switch {
	case t.Before(first):
		t = first
	case t.After(last):
		t = last
	}
	t = t.UTC()
	return &t
}

// Scan yields the messages of a subject from a sequence on, perhaps as a replica has them: what was stored a moment ago
// may be missing at the end, nothing in between. An error ends it.
func (s Stream) Scan(ctx context.Context, subject string, from uint64) iter.Seq2[Message, error] {
	return s.ScanPages(ctx, Page{Seq: from, Next: subject, Batch: FirstPage, Bytes: PageBytes})
}

// ScanPages is Scan of what a page asks for, and what follows it.
func (s Stream) ScanPages(ctx context.Context, p Page) iter.Seq2[Message, error] {
	if !s.bus.direct {
		return s.sequence(ctx, p, FirstPage)
	}
	return func(yield func(Message, error) bool) {
		for more := true; more; {
			last, pending, wanted, err := s.ReadPage(ctx, p, yield)
			if err != nil {
				yield(Message{}, err)
				return
			}
			more = wanted && pending > 0 && last > 0
			p.Seq, p.Since, p.Batch = last+1, nil, NextPages
		}
	}
}

// widePage is how many messages of many subjects are read one by one.
const widePage = 512

// ScanWide is Scan of a filter that very many subjects match. For each page the server counts what follows, twice, which takes time with the
// subjects: tens of milliseconds for 100,000. So the first 512 messages come one by one, and it counts once if there are more.
func (s Stream) ScanWide(ctx context.Context, subject string, from uint64) iter.Seq2[Message, error] {
	return s.sequence(ctx, Page{Seq: from, Next: subject}, widePage)
}

// sequence reads so many messages one by one, and the rest by a consumer. Unlike a page that is open to a user who may not ask for messages as
// they are (DIRECT.GET), for the server sends those in its own name to any subject that the request names, a dispatcher's or a bucket's.
func (s Stream) sequence(ctx context.Context, p Page, single int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		at := Lookup{Seq: p.Seq, Since: p.Since, Next: p.Next}
		for range single {
			m, ok, err := s.Near(ctx, at)
			if err != nil {
				yield(Message{}, err)
				return
			}
			if !ok || !yield(m, nil) {
				return
			}
			at.Seq, at.Since = m.Seq+1, nil
		}
		t := &Tail{Bus: s.bus, Stream: s.name, Filter: p.Next, Room: FollowRoom}
		t.Start.DeliverPolicy, t.Start.OptStartSeq = jetstream.DeliverByStartSequencePolicy, at.Seq
		defer t.Close()
		if err := t.open(ctx, time.Time{}); err != nil {
			yield(Message{}, err)
			return
		}
		for more := t.Owes(); more; {
			m, err := t.Next(ctx, time.Now().Add(s.bus.budget))
			if errors.Is(err, ErrNothing) { // what was left has been removed meanwhile
				return
			}
			if !yield(m.Message, err) || err != nil {
				return
			}
			more = m.Pending > 0
		}
	}
}

// ReadPage yields one page and tells where it ended and how many messages follow.
func (s Stream) ReadPage(ctx context.Context, p Page, yield func(Message, error) bool) (last, pending uint64, wanted bool, err error) {
	body, err := json.Marshal(p)
	if err != nil {
		return 0, 0, false, fmt.Errorf("encode request: %w", err)
	}
	in, err := OpenInbox(s.bus.nc, p.Batch+1)
	if err != nil {
		return 0, 0, false, fmt.Errorf("subscribe: %w", err)
	}
	defer in.Close()
	if err := s.bus.nc.PublishRequest(APIPrefix+"DIRECT.GET."+s.name, in.Sub.Subject, body); err != nil {
		return 0, 0, false, fmt.Errorf("ask for messages: %w", err)
	}
	for {
		m, err := in.Next(ctx, s.bus.answer)
		if err != nil {
			return 0, 0, false, fmt.Errorf("wait for messages: %w", err)
		}
		switch status := m.Header.Get(StatusHeader); status {
		case "":
		case statusEnd:
			pending, _ = strconv.ParseUint(m.Header.Get(headerPending), 10, 64)
			return last, pending, true, nil
		case StatusNone:
			return last, 0, true, nil
		default:
			return 0, 0, false, fmt.Errorf("ask for messages: status %s", status)
		}
		stored, err := direct(m)
		if err != nil {
			return 0, 0, false, err
		}
		last = stored.Seq
		if !yield(stored, nil) {
			return last, 0, false, nil
		}
	}
}

// direct reads a message as DIRECT.GET answers it.
func direct(m *nats.Msg) (Message, error) {
	seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil || seq == 0 {
		return Message{}, errors.New("decode answer: no sequence")
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return Message{}, fmt.Errorf("decode answer: %w", err)
	}
	return Message{m.Header.Get(jetstream.SubjectHeader), seq, m.Header, m.Data, at}, nil
}
