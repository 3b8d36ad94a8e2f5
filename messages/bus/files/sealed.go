package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
)

// Sealer encrypts values with a key of the tenant. Safe for concurrent use. An error that is a record.ErrNoKey says that this process
// lacks the key, and others may have it; one that is a record.ErrUnreadable, that it opens for none.
type Sealer interface {
	// Seal encrypts plain and binds it to where it stands. It may return plain as it is, when nothing is to be encrypted.
	Seal(ctx context.Context, tenant string, plain, at []byte) ([]byte, error)
	// Open undoes Seal; it fails when anything is not as it was. What was never sealed it returns as it is, or refuses.
	Open(ctx context.Context, tenant string, value, at []byte) ([]byte, error)
}

// Places beside those of the parts of a content.
const (
	headPart  = -1 // a head that tells of parts
	entryPart = -2 // an upload
)

// placeOf is what a stored message is bound to: the storing and the part of a content. No part can hold a line break.
func placeOf(tenant, hash, put string, part int64) []byte {
	return fmt.Appendf(nil, "longshore file 1\n%s\n%s\n%s\n%d", tenant, hash, put, part)
}

func (st *Store) seal(ctx context.Context, tenant string, plain, place []byte) ([]byte, error) {
	if st.sealer == nil {
		return plain, nil
	}
	data, err := st.sealer.Seal(ctx, tenant, plain, place)
	if err != nil {
		return nil, fmt.Errorf("seal a file: %w", err)
	}
	return data, nil
}

// clear is an error where what is in the clear is refused.
func (st *Store) clear(ctx context.Context, tenant string) error {
	if st.sealer == nil {
		return nil
	}
	_, err := st.sealer.Open(ctx, tenant, nil, nil)
	return damaged(err)
}

// open returns a message as it was before it was sealed.
func (st *Store) open(ctx context.Context, tenant string, data, place []byte) ([]byte, error) {
	if st.sealer == nil {
		if bus.IsSealed(data) {
			return nil, record.ErrNoKey
		}
		return data, nil
	}
	data, err := st.sealer.Open(ctx, tenant, data, place)
	return data, damaged(err)
}

// damaged is an error of a Sealer in the words of contents: what opens for no process is damaged.
func damaged(err error) error {
	if errors.Is(err, record.ErrUnreadable) {
		return fmt.Errorf("%w: %w", manifest.ErrDamaged, err)
	}
	return err
}
