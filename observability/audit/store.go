package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// StoreConfig is fixed for the life of a Store.
type StoreConfig struct {
	Dir          string
	Key          Key              // signs
	Keys         PublicKeys       // of keys before this one, whose heads still count
	SegmentBytes int64            // a segment that is larger is followed by another; default 64 MiB
	Now          func() time.Time // default time.Now
	Log          *slog.Logger     // default: discard

	disk disk // of tests
}

const defaultSegment = 64 << 20

// Store adds to the chains of a folder. It belongs to one goroutine. After an error of Commit or Retire it is of no
// more use: close it and open the folder again.
type Store struct {
	cfg      StoreConfig
	lock     *os.File
	heads    *chain
	tenants  map[string]*chain
	from     uint64 // the first entry of the heads that is kept
	position events.Position
	compared events.Position
	buffered int // bytes
	dirty    bool
	failed   error
}

// Open opens or creates a folder and discards what was written after the last head. It returns an error if the ends of the
// chains were tampered with; only Verify checks everything.
func Open(cfg StoreConfig) (*Store, error) {
	if cfg.SegmentBytes == 0 {
		cfg.SegmentBytes = defaultSegment
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.disk == nil {
		cfg.disk = folder(cfg.Dir)
	}
	if err := os.MkdirAll(cfg.Dir, privateDir); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	lock, err := lockFile(filepath.Join(cfg.Dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w (does another auditor write there?)", cfg.Dir, err)
	}
	s := &Store{cfg: cfg, lock: lock, heads: &chain{name: headsChain}, tenants: map[string]*chain{}}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// Close gives the folder free. What was not committed is lost.
func (s *Store) Close() error { return s.lock.Close() }

// Position is up to where EVENTS is in the chains, what is not committed included.
func (s *Store) Position() events.Position { return s.position }

// ComparedTo is up to where runs that ended were compared.
func (s *Store) ComparedTo() events.Position { return s.compared }

// in says in how many streams EVENTS is. An error says that the chains are of another number.
func (s *Store) in(streams int) error {
	for _, at := range []*events.Position{&s.position, &s.compared} {
		if err := at.Fits(streams); err != nil {
			return fmt.Errorf("%w: this folder is the audit of other streams; start a new folder", err)
		}
		*at = at.Max(make(events.Position, streams))
	}
	return nil
}

// Buffered is how many bytes wait for a Commit.
func (s *Store) Buffered() int { return s.buffered }

// Message is one of EVENTS.
type Message struct {
	Stream  int // its number, of several
	Seq     uint64
	At      time.Time
	Subject string
	Body    []byte
	Run     messages.Ref // of the event; without a tenant: it is none

	seal func(*Entry) error // the body; nil: it is kept as it is
}

// Message adds the message that follows the last one. What is no event stands in the chain of its tenant if there is
// one, and else beside the heads: junk makes no chains. An error says that it could not be encrypted, and that nothing was added.
func (s *Store) Message(m Message, tenant string) error {
	to := s.position.Max(make(events.Position, m.Stream+1))
	before := to[m.Stream]
	to[m.Stream] = m.Seq
	e := Entry{At: m.At, Kind: KindEvent, Position: to.Sum()}
	if m.Run.Tenant == "" {
		e.Kind = KindForeign
	}
	e.message(m.Subject, m.Body)
	if m.seal != nil {
		if err := m.seal(&e); err != nil {
			return err
		}
	}
	if m.Seq > before+1 && before > 0 {
		s.gap(before+1, m.Seq-1, e.Position-1)
	}
	s.position = to
	switch {
	case m.Run.Tenant != "":
		s.add(s.tenant(m.Run.Tenant), &e)
	case s.tenants[tenant] != nil:
		s.add(s.tenants[tenant], &e)
	default:
		e.At = s.cfg.Now()
		s.addHead(&e)
	}
	return nil
}

// gap notes that messages were gone before they could be read.
func (s *Store) gap(from, to, position uint64) {
	body, _ := json.Marshal(map[string]uint64{"from": from, "to": to}) // numbers always encode
	s.addHead(&Entry{At: s.cfg.Now(), Kind: KindGap, Position: position, Body: body})
	s.cfg.Log.Warn("events were gone before they were read: the audit has a gap", "from", from, "to", to)
}

// Uncompared notes that the ends of runs were gone before they could be compared.
func (s *Store) Uncompared(from, to uint64) {
	body, _ := json.Marshal(map[string]any{"from": from, "to": to, "of": "comparisons"}) // numbers always encode
	s.addHead(&Entry{At: s.cfg.Now(), Kind: KindGap, Position: s.position.Sum(), Body: body})
	s.cfg.Log.Warn("events were gone before the runs that ended with them were compared", "from", from, "to", to)
}

// Start notes that an auditor begins.
func (s *Store) Start(about any) error {
	body, err := json.Marshal(about)
	if err != nil {
		return fmt.Errorf("encode a start: %w", err)
	}
	s.addHead(&Entry{At: s.cfg.Now(), Kind: KindStart, Position: s.position.Sum(), Body: body})
	return nil
}

// Compared adds what came out when a run was compared with its log. Its end is at a position; empty: it has none.
func (s *Store) Compared(c *Comparison, position events.Position) error {
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode a comparison: %w", err)
	}
	kind := KindFinding
	if c.Outcome == OutcomeComplete {
		kind = KindCompared
	}
	s.add(s.tenant(c.run.Tenant), &Entry{At: s.cfg.Now(), Kind: kind, Position: position.Sum(), Subject: c.run.LogSubject(), Body: body})
	s.comparedTo(position)
	return nil
}

// comparedTo says that all runs that ended up to a position were compared.
func (s *Store) comparedTo(position events.Position) {
	if !s.compared.Reaches(position) {
		s.compared, s.dirty = s.compared.Max(position), true
	}
}

func (s *Store) tenant(name string) *chain {
	c := s.tenants[name]
	if c == nil {
		c = &chain{name: chainOf(name)}
		s.tenants[name] = c
	}
	return c
}

func (s *Store) add(c *chain, e *Entry) {
	c.link(e)
	s.buffered += c.add(e, c.rotates(e.At, s.cfg.SegmentBytes))
	s.dirty = true
}

// addHead adds to the heads. A commit is in one segment of theirs.
func (s *Store) addHead(e *Entry) {
	s.heads.link(e)
	s.cfg.Key.sign(e)
	s.buffered += s.heads.add(e, len(s.heads.parts) == 0 && s.heads.rotates(e.At, s.cfg.SegmentBytes))
	s.dirty = true
}

// Commit stores what was added, and then a signed head of it. When it returns without an error all is durable; killed
// before, nothing of it counts.
func (s *Store) Commit() error {
	if s.failed != nil || !s.dirty {
		return s.failed
	}
	s.failed = errors.New("an earlier commit failed")
	if err := s.commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.failed = nil
	return nil
}

func (s *Store) commit() error {
	for _, name := range slices.Sorted(maps.Keys(s.tenants)) {
		if err := s.tenants[name].write(s.cfg.disk); err != nil {
			return err
		}
	}
	at := s.cfg.Now()
	whole := len(s.heads.parts) == 0 && s.heads.rotates(at, s.cfg.SegmentBytes) ||
		len(s.heads.parts) > 0 && s.heads.size == int64(len(s.heads.parts[0].data))
	head := headBody{Compared: s.compared.Sum(), Chains: map[string]Tail{}, Whole: whole, From: s.from}
	if len(s.position) > 1 {
		head.Position, head.ComparedTo = s.position.String(), s.compared.String()
	}
	for name, c := range s.tenants {
		if whole || c.changed {
			head.Chains[name] = c.tail
		}
	}
	for _, b := range head.bodies() {
		body, err := json.Marshal(b)
		if err != nil {
			return fmt.Errorf("encode a head: %w", err)
		}
		s.addHead(&Entry{At: at, Kind: KindHead, Position: s.position.Sum(), Body: body})
	}
	if err := s.heads.write(s.cfg.disk); err != nil {
		return err
	}
	for _, c := range s.tenants {
		c.changed = false
	}
	s.buffered, s.dirty = 0, false
	return nil
}
