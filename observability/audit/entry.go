package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is what an entry is about.
type Kind string

// Kinds of entries.
const (
	KindEvent    Kind = "event"    // a message of EVENTS, as it was published
	KindForeign  Kind = "foreign"  // a message of EVENTS that is not what its subject says
	KindCompared Kind = "compared" // the events of a run are those that its log gives
	KindFinding  Kind = "finding"  // they are not, or could not be compared
	KindHead     Kind = "head"     // of all chains
	KindGap      Kind = "gap"      // messages of EVENTS were gone before they were read
	KindStart    Kind = "start"    // of the auditor
)

// Limits of an entry, in bytes.
const (
	maxBody = 256 << 10 // longer ones, which no event of ours is, are kept as their hash
	maxLine = 4 << 20   // a head that names many chains
)

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// MarshalText writes it in hex.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads hex.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return errors.New("not a SHA-256 in hex")
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return fmt.Errorf("not a SHA-256 in hex: %w", err)
	}
	return nil
}

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Entry is one link of a chain. Its chain is not written with it: it is a part of the hash.
type Entry struct {
	N         uint64          `json:"n"` // from 1 without gaps
	Prev      Hash            `json:"prev"`
	At        time.Time       `json:"at"` // when the stream stored the message; else when it was written
	Kind      Kind            `json:"kind"`
	Position  uint64          `json:"position"` // sequence in EVENTS; in several streams the sum of those up to which the auditor had read
	Subject   string          `json:"subject,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`   // byte for byte
	Raw       []byte          `json:"raw,omitempty"`    // in its place, of what is not JSON in a line
	Sealed    []byte          `json:"sealed,omitempty"` // in place of both, encrypted with the key of the tenant: the hash is over what stands here
	Hash      Hash            `json:"hash"`
	Key       string          `json:"key,omitempty"` // of the signature, which only entries of the heads have
	Signature []byte          `json:"signature,omitempty"`
}

// message sets subject and body, whatever they are.
func (e *Entry) message(subject string, body []byte) {
	e.Subject = strings.ToValidUTF8(subject, "\uFFFD")
	if len(body) > maxBody {
		e.omit(body)
		e.Kind = KindForeign
		return
	}
	e.set(body)
}

func (e *Entry) set(body []byte) {
	e.Body, e.Raw, e.Sealed = nil, nil, nil
	if isLine(body) {
		e.Body = body
	} else {
		e.Raw = body
	}
}

// omit keeps the hash of a body in its place.
func (e *Entry) omit(body []byte) {
	sum := Hash(sha256.Sum256(body))
	e.set([]byte(`{"omitted":{"size":` + strconv.Itoa(len(body)) + `,"sha256":"` + sum.String() + `"}}`))
}

// isLine reports whether text is JSON that comes out of a line of JSON as it went in.
func isLine(text []byte) bool {
	return len(text) > 0 && json.Valid(text) && !bytes.ContainsAny(text, "\n\r") && len(bytes.TrimSpace(text)) == len(text) && !bytes.Equal(text, []byte("null"))
}

// hashContext keeps a hash of ours from being one of something else.
const hashContext = "longshore audit entry 1\n"

// sum is the hash of an entry in a chain: over each part after its length, so that no two entries have the same bytes.
func (e *Entry) sum(chain string) Hash {
	h := sha256.New()
	var size [8]byte
	part := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	h.Write([]byte(hashContext))
	part([]byte(chain))
	part(strconv.AppendUint(nil, e.N, 10))
	part(e.Prev[:])
	part(e.At.AppendFormat(nil, time.RFC3339Nano))
	part([]byte(e.Kind))
	part(strconv.AppendUint(nil, e.Position, 10))
	part([]byte(e.Subject))
	part(e.Body)
	part(e.Raw)
	if len(e.Sealed) > 0 { // entries of before have no such part
		part(e.Sealed)
	}
	return Hash(h.Sum(nil))
}

// appendLine writes the entry as one line. The body stands in it as it is, which the encoder of the library would not
// leave alone.
func (e *Entry) appendLine(b []byte) []byte {
	b = append(b, `{"n":`...)
	b = strconv.AppendUint(b, e.N, 10)
	b = append(b, `,"prev":"`...)
	b = hex.AppendEncode(b, e.Prev[:])
	b = append(b, `","at":"`...)
	b = e.At.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","kind":"`...)
	b = append(b, e.Kind...)
	b = append(b, `","position":`...)
	b = strconv.AppendUint(b, e.Position, 10)
	if e.Subject != "" {
		b = append(b, `,"subject":`...)
		text, _ := json.Marshal(e.Subject) // a text always encodes
		b = append(b, text...)
	}
	if len(e.Body) > 0 {
		b = append(b, `,"body":`...)
		b = append(b, e.Body...)
	}
	if len(e.Raw) > 0 {
		b = append(b, `,"raw":`...)
		text, _ := json.Marshal(e.Raw) // bytes always encode
		b = append(b, text...)
	}
	if len(e.Sealed) > 0 {
		b = append(b, `,"sealed":`...)
		text, _ := json.Marshal(e.Sealed) // likewise
		b = append(b, text...)
	}
	b = append(b, `,"hash":"`...)
	b = hex.AppendEncode(b, e.Hash[:])
	b = append(b, '"')
	if e.Key != "" {
		b = append(b, `,"key":"`...)
		b = append(b, e.Key...)
		b = append(b, `","signature":`...)
		text, _ := json.Marshal(e.Signature)
		b = append(b, text...)
	}
	return append(b, "}\n"...)
}

// parseLine reads a line, with its end. It takes what appendLine writes and nothing else, not a space more.
func parseLine(line []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{}, fmt.Errorf("not an entry: %w", err)
	}
	if y := e.At.Year(); y < 0 || y > 9999 {
		return Entry{}, errors.New("not an entry: its time is none")
	}
	if !bytes.Equal(e.appendLine(make([]byte, 0, len(line))), line) {
		return Entry{}, errors.New("not as it was written")
	}
	return e, nil
}

// Line is the entry as in its file, with the end of the line.
func (e *Entry) Line() []byte { return e.appendLine(nil) }
