package longterm

import (
	"maps"
	"slices"
	"time"
)

// Bounds of an item.
const (
	MaxText       = 64 << 10 // bytes
	MaxFields     = 64
	MaxFieldName  = 64       // bytes
	MaxFieldText  = 4 << 10  // bytes of a value
	MaxFieldBytes = 16 << 10 // of all names and values together
	MaxTags       = 32
	MaxTag        = 64 // bytes
	MaxSubject    = 128
	MaxSource     = 512 // bytes of a document's name
	MaxDimensions = 4096
	MaxModel      = 128
)

// Item is one thing that is remembered.
type Item struct {
	ID     string `json:"id"` // 1 to 64 characters of A-Z a-z 0-9 _ -
	Scope  Scope  `json:"scope,omitzero"`
	Text   string `json:"text,omitempty"`
	Fields Fields `json:"fields,omitempty"`
	// Tags are in order and without repetition when they are read.
	Tags    []string  `json:"tags,omitempty"`
	Created time.Time `json:"created,omitzero"` // to the microsecond; zero in a write: now
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Source  Source    `json:"source,omitzero"`
	// Vector is the text's meaning to Model; a search compares it with vectors of the same Model and length alone.
	Vector []float32 `json:"vector,omitempty"`
	Model  string    `json:"model,omitempty"`
	// Sealed is what Sealed has sealed: Text, Source and Vector. Callers leave it empty.
	Sealed []byte `json:"sealed,omitempty"`
}

// Scope says whom an item belongs to. Each part may be empty: then it belongs to all of the tenant.
type Scope struct {
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Subject string `json:"subject,omitempty"` // the person or thing that the item is about, as data requests name it
}

// Source says where an item came from: a step of a run, or a part of a document.
type Source struct {
	Run      string `json:"run,omitempty"`
	Step     int    `json:"step,omitempty"`
	Document string `json:"document,omitempty"`
	Position int    `json:"position,omitempty"` // of the part in the document, from 0
}

// Fields are flat values: string, bool, and any number of Go, which is float64 when it is read.
type Fields map[string]any

// Size is how many bytes an item counts: its texts, names and values, and four for each dimension of its vector.
func (it *Item) Size() int64 {
	n := len(it.ID) + len(it.Scope.Agent) + len(it.Scope.Session) + len(it.Scope.Subject) + len(it.Text) + len(it.Source.Run) +
		len(it.Source.Document) + 4*len(it.Vector) + len(it.Model) + len(it.Sealed)
	for name, value := range it.Fields {
		n += len(name) + len(encode(value))
	}
	for _, tag := range it.Tags {
		n += len(tag)
	}
	return int64(n)
}

// Ended reports whether an item has expired.
func (it *Item) Ended(now time.Time) bool { return !it.Expires.IsZero() && !it.Expires.After(now) }

// Clone returns a copy that shares nothing with it.
func (it *Item) Clone() Item {
	c := *it
	c.Fields, c.Tags, c.Vector, c.Sealed = maps.Clone(it.Fields), slices.Clone(it.Tags), slices.Clone(it.Vector), slices.Clone(it.Sealed)
	return c
}
