package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoSpace means that the NATS server refuses to store. When its disk was full it does so until it is restarted.
var ErrNoSpace = errors.New("the NATS server cannot store: no space left; make room, or raise its max_file_store, then restart it")

// errNoJetStream is what a server looks like that has turned JetStream off, for a full disk among others.
var errNoJetStream = errors.New("JetStream does not answer on the NATS server: it turns itself off when its disk is full; " +
	"make room if it is, then restart the server")

// errSilent is what a server looks like whose disk was full when a stream wrote to it.
var errSilent = fmt.Errorf("%w (it answers, and acknowledges nothing that is stored)", ErrNoSpace)

// Codes of a server that has no room.
const (
	codeNoResources    jetstream.ErrorCode = 10023 // max_file_store is reached
	codeNoStorage      jetstream.ErrorCode = 10047
	codeNotStored      jetstream.ErrorCode = 10077 // the description says why
	codeAccountStorage jetstream.ErrorCode = 10002 // the limit of the account is reached
)

// noSpace reports whether the server refused a message for want of room.
func noSpace(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return false
	}
	switch api.ErrorCode {
	case codeNoResources, codeNoStorage, codeAccountStorage:
		return true
	case codeNotStored:
		return strings.Contains(api.Description, "no space left")
	default:
		return false
	}
}

// notAnswered reports whether JetStream is off on a server that can be reached.
func notAnswered(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || Refused(err, codeNotEnabled) || Refused(err, codeNotAllowed)
}

// Unavailable says, for people, why a request failed that may succeed later, when NATS is the reason.
func Unavailable(err error) (why string, ok bool) {
	switch {
	case err == nil:
		return "", false
	case errors.Is(err, errSilent):
		return errSilent.Error(), true
	case errors.Is(err, ErrNoSpace) || noSpace(err):
		return ErrNoSpace.Error(), true
	case errors.Is(err, errNoJetStream) || notAnswered(err):
		return errNoJetStream.Error(), true
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrStaleConnection), errors.Is(err, nats.ErrNoServers):
		return "NATS is not reachable", true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return "the message store did not answer in time", true
	default:
		if api, is := errors.AsType[*jetstream.APIError](err); is && Transient(api) {
			return "the message store cannot do this now: " + api.Description, true
		}
		return "", false
	}
}

// maxSilent is how many publishes to a stream may go unanswered, one after the other, before the stream counts as broken.
const maxSilent = 2

// storage is whether the server stores, as the answers to publishes say. A stream that could not write to a full disk
// answers no publish until the server is restarted, while the server continues with all else.
type storage struct {
	full  atomic.Bool
	noted atomic.Bool // silent is not empty

	mu         sync.Mutex
	silent     map[string]int // unanswered publishes since the last answer, by streamOf the subject
	reconnects uint64         // to which that belongs
}

// heard notes what came of a publish.
func (s *storage) heard(nc *nats.Conn, subject string, err error) {
	switch {
	case err == nil:
		if s.full.Load() { // mostly a read
			s.full.Store(false)
		}
	case noSpace(err):
		s.full.Store(true)
	}
	timedOut := errors.Is(err, context.DeadlineExceeded) && nc.IsConnected()
	if !timedOut && !s.noted.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(nc)
	stream := streamOf(subject)
	if timedOut {
		s.silent[stream]++
	} else {
		delete(s.silent, stream)
	}
	s.noted.Store(len(s.silent) > 0)
}

// streamOf tells the streams of subjects apart: by the first token, and partitions by their number too.
func streamOf(subject string) string {
	first, rest, _ := strings.Cut(subject, ".")
	if first+"." == partitionPrefix {
		of, rest, _ := strings.Cut(rest, ".")
		number, _, _ := strings.Cut(rest, ".")
		return partitionPrefix + of + "." + number
	}
	return first
}

// forget begins anew when the connection did: the server may have been restarted. The caller holds mu.
func (s *storage) forget(nc *nats.Conn) {
	if n := nc.Stats().Reconnects; s.silent == nil || n != s.reconnects {
		s.silent, s.reconnects = map[string]int{}, n
	}
}

// err says why the server does not store; nil: it does.
func (s *storage) err(nc *nats.Conn) error {
	if s.full.Load() {
		return ErrNoSpace
	}
	if !s.noted.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(nc)
	for _, n := range s.silent {
		if n >= maxSilent {
			return errSilent
		}
	}
	return nil
}

// storageProbe is a message that each probe stores in place of the last one.
const storageProbe = "$KV." + BucketSessions + ".storage"

// probeSize is more than what a full disk still has room for in a block that is begun.
const probeSize = 8 << 10

// CheckStorage is an error while the server refuses to store, as far as this process has seen.
func (b *Bus) CheckStorage() error {
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return b.answers.storage.err(b.nc)
}

// KeepStorage stores a message now, and then every so often until ctx ends, for CheckStorage. It is an empty one, for many
// workers store it along with the work of the fleet; a large one is more than what a full disk still has room for, and so is
// each while the server is known to refuse.
func (b *Bus) KeepStorage(ctx context.Context, every time.Duration, large bool) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		size := 0
		if large || b.CheckStorage() != nil {
			size = probeSize
		}
		b.probeStorage(ctx, size)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// probeStorage stores a message of so many bytes. CheckStorage says what came of it.
func (b *Bus) probeStorage(ctx context.Context, size int) {
	_, err := b.StoreOnce(ctx, &nats.Msg{Subject: storageProbe, Header: nats.Header{}, Data: make([]byte, size)})
	switch {
	case err == nil:
		b.broken.Store(nil)
	case notAnswered(err) && b.nc.IsConnected():
		why := errNoJetStream
		if full := b.answers.storage.err(b.nc); full != nil { // it was full, and is off now
			why = full
		}
		b.broken.Store(&why)
	}
}

// because gives the error of a request the name of its cause, when the server was seen to refuse.
func (b *Bus) because(err error) error {
	if b.answers == nil || errors.Is(err, ErrNoSpace) {
		return err
	}
	why := b.answers.storage.err(b.nc)
	if _, ok := Unavailable(err); why == nil || !ok {
		return err
	}
	return fmt.Errorf("%w: %w", why, err)
}
