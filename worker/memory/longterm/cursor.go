package longterm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Position is the last item of a page: the next page begins with the items after it, by falling time and id. The zero value is
// the beginning.
type Position struct {
	Created time.Time
	ID      string
}

// After reports whether an item comes after a position.
func (p Position) After(it *Item) bool {
	if p.ID == "" {
		return true
	}
	if !it.Created.Equal(p.Created) {
		return it.Created.Before(p.Created)
	}
	return it.ID < p.ID
}

// Compare orders items as pages have them: the newest first, and of one time those with the larger id.
func Compare(a, b *Item) int {
	switch {
	case a.Created.Equal(b.Created) && a.ID == b.ID:
		return 0
	case (Position{b.Created, b.ID}).After(a):
		return 1
	default:
		return -1
	}
}

// MakePage is the page of a query that begins with the given items, which are in order; more of them than its limit say that there is another page.
func MakePage(at Place, q *Query, items []Item) Page {
	if len(items) <= q.Limit {
		return Page{Items: items}
	}
	items = items[:q.Limit]
	return Page{Items: items, Next: makeCursor(at, q, &items[q.Limit-1])}
}

const digestBytes = 8

// digest is that of a place and a filter, which has passed its checks.
func digest(at Place, f *Filter) []byte {
	text, _ := json.Marshal(struct { // all of it can be encoded
		At Place   `json:"at"`
		F  *Filter `json:"f"`
	}{at, f})
	sum := sha256.Sum256(text)
	return sum[:digestBytes]
}

// makeCursor returns the cursor of the page after an item, for a query that has passed its check.
func makeCursor(at Place, q *Query, last *Item) string {
	b := binary.BigEndian.AppendUint64(digest(at, &q.Filter), uint64(last.Created.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(b, last.ID...))
}

func readCursor(at Place, f *Filter, cursor string) (p Position, err error) {
	if cursor == "" {
		return p, nil
	}
	wrong := &messages.FieldError{Field: "cursor", Reason: "is not of this query; begin again without a cursor"}
	if len(cursor) > 256 {
		return p, wrong
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < digestBytes+8 || string(b[:digestBytes]) != string(digest(at, f)) {
		return p, wrong
	}
	p = Position{time.UnixMicro(int64(binary.BigEndian.Uint64(b[digestBytes:]))).UTC(), string(b[digestBytes+8:])}
	if !strict.ValidToken(p.ID) {
		return Position{}, wrong
	}
	return p, nil
}
