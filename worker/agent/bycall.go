package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// byCall is what is known of calls of a run, by CallKey, in the order in which it became known. It is a list because a State is cloned for each
// append: a map would have to be copied as a whole each time, however long the run is. As JSON it is an object.
type byCall[T any] []known[T]

type known[T any] struct {
	key   string
	value T
}

// add adds what is known of a call. What was known of it before no longer counts.
func (b *byCall[T]) add(key string, value T) { *b = append(*b, known[T]{key, value}) }

// of returns what is known of a call. It looks at the newest first.
func (b byCall[T]) of(key string) (value T) {
	for i := range slices.Backward(b) {
		if b[i].key == key {
			return b[i].value
		}
	}
	return value
}

// all is for those who ask about many calls.
func (b byCall[T]) all() map[string]T {
	m := make(map[string]T, len(b))
	for i := range b {
		m[b[i].key] = b[i].value
	}
	return m
}

// MarshalJSON implements json.Marshaler.
func (b byCall[T]) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(b.all())
	if err != nil {
		return nil, fmt.Errorf("encode what is known of calls: %w", err)
	}
	return data, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *byCall[T]) UnmarshalJSON(data []byte) error {
	var m map[string]T
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("decode what is known of calls: %w", err)
	}
	*b = make(byCall[T], 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b.add(key, m[key])
	}
	return nil
}
