package sqlstore

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// columns are those of an item, but for its key and where it belongs, in the order of args and scan.
const columns = "id, agent, session, subject, text, fields, tags, created, expires, run, step, document, position, vector, dims, model, sealed"

func args(it *longterm.Item) ([]any, error) {
	fields, err := json.Marshal(it.Fields)
	if err != nil {
		return nil, fmt.Errorf("encode fields: %w", err)
	}
	tags, err := json.Marshal(it.Tags)
	if err != nil {
		return nil, fmt.Errorf("encode tags: %w", err)
	}
	var expires any
	if !it.Expires.IsZero() {
		expires = it.Expires.UnixMicro()
	}
	return []any{
		it.ID, it.Scope.Agent, it.Scope.Session, it.Scope.Subject, it.Text, string(fields), string(tags), it.Created.UnixMicro(), expires,
		it.Source.Run, it.Source.Step, it.Source.Document, it.Source.Position, pack(it.Vector), len(it.Vector), it.Model, it.Sealed,
	}, nil
}

// scan reads the columns of a row; more are read before them.
func scan(row func(...any) error, more ...any) (longterm.Item, error) {
	var (
		it           longterm.Item
		fields, tags string
		created      int64
		expires      *int64
		vector       []byte
		dims         int
	)
	err := row(append(more, &it.ID, &it.Scope.Agent, &it.Scope.Session, &it.Scope.Subject, &it.Text, &fields, &tags, &created, &expires,
		&it.Source.Run, &it.Source.Step, &it.Source.Document, &it.Source.Position, &vector, &dims, &it.Model, &it.Sealed)...)
	if err != nil {
		return it, err
	}
	if err := json.Unmarshal([]byte(fields), &it.Fields); err != nil {
		return it, fmt.Errorf("decode fields: %w", err)
	}
	if err := json.Unmarshal([]byte(tags), &it.Tags); err != nil {
		return it, fmt.Errorf("decode tags: %w", err)
	}
	it.Created = time.UnixMicro(created).UTC()
	if expires != nil {
		it.Expires = time.UnixMicro(*expires).UTC()
	}
	it.Vector = unpack(vector)
	if len(it.Sealed) == 0 {
		it.Sealed = nil
	}
	return it, nil
}

// pack is a vector in four bytes a dimension; nil for none.
func pack(vector []float32) []byte {
	if len(vector) == 0 {
		return nil
	}
	b := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// cosine is longterm.Cosine of a packed vector and another one; 0 if their lengths differ.
func cosine(packed []byte, with []float32) float64 {
	if len(packed) != 4*len(with) {
		return 0
	}
	var dot, aa, bb float64
	for i, w := range with {
		x, y := float64(math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))), float64(w)
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}

func unpack(b []byte) []float32 {
	if len(b) < 4 {
		return nil
	}
	vector := make([]float32, len(b)/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return vector
}
