package runlogs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/strict"
)

// Sizes of a blob, in bytes.
const (
	blobPart = 256 << 10
	maxBlob  = 64 << 20
	blobRoom = 4 << 10 // kept free in a message for subject and headers, when the server allows less than a part
)

// blobRef says where a payload is: parts of size bytes in all, on subjects of the run named by the hash.
type blobRef struct {
	hash  string // SHA-256 of the whole, in hex
	parts int
	size  int
}

// String is the header's form: hash/parts/size.
func (r blobRef) String() string { return fmt.Sprintf("%s/%d/%d", r.hash, r.parts, r.size) }

func parseBlobRef(s string) (blobRef, error) {
	bad := fmt.Errorf("header %s is not hash/parts/size: %q", headerBlob, strict.Clip(s, 128))
	f := strings.Split(s, "/")
	if len(f) != 3 {
		return blobRef{}, bad
	}
	hash, err := hex.DecodeString(f[0])
	parts, errParts := strconv.Atoi(f[1])
	size, errSize := strconv.Atoi(f[2])
	if errors.Join(err, errParts, errSize) != nil || len(hash) != sha256.Size || f[0] != hex.EncodeToString(hash) ||
		size < 1 || size > maxBlob || parts < 1 || parts > size {
		return blobRef{}, bad
	}
	return blobRef{f[0], parts, size}, nil
}

// putBlob stores a payload of a run; the same payload is stored once. All parts are acknowledged when it returns.
func (st *Store) putBlob(ctx context.Context, run messages.Ref, data []byte) (blobRef, error) {
	if len(data) > st.cfg.MaxBlob {
		return blobRef{}, fmt.Errorf("%d bytes, more than %d", len(data), st.cfg.MaxBlob)
	}
	most := min(blobPart, int(st.bus.Conn().MaxPayload())-blobRoom)
	if most < 1 {
		return blobRef{}, fmt.Errorf("the server's max_payload of %d bytes is too small", st.bus.Conn().MaxPayload())
	}
	sum := sha256.Sum256(data)
	ref := blobRef{hex.EncodeToString(sum[:]), (len(data) + most - 1) / most, len(data)}
	size := (len(data) + ref.parts - 1) / ref.parts
	for i := range ref.parts {
		m := &nats.Msg{
			Subject: ref.subject(run, i), Header: nats.Header{},
			Data: data[i*size : min((i+1)*size, len(data))],
		}
		if err := st.bus.StoreFirst(ctx, m); err != nil {
			return blobRef{}, err
		}
	}
	return ref, nil
}

// subject of a part. It tells the count too: the same payload cut otherwise has other subjects.
func (r blobRef) subject(run messages.Ref, part int) string {
	return run.BlobSubject(r.hash, strconv.Itoa(part)+"-"+strconv.Itoa(r.parts))
}

// getBlob reads the payload that a header names, and verifies it.
func (st *Store) getBlob(ctx context.Context, run messages.Ref, header string) ([]byte, error) {
	ref, err := parseBlobRef(header)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, ref.size)
	for i := range ref.parts {
		part, err := st.getPart(ctx, ref.subject(run, i))
		if err != nil {
			return nil, fmt.Errorf("read part %d of blob %s: %w", i, ref.hash, err)
		}
		if len(data)+len(part) > ref.size {
			break // the hash will not match
		}
		data = append(data, part...)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != ref.hash {
		return nil, fmt.Errorf("blob %s is damaged: its hash is another", ref.hash)
	}
	return data, nil
}

// getPart asks the leader: a part is acknowledged before what names it.
func (st *Store) getPart(ctx context.Context, subject string) ([]byte, error) {
	s, ok, err := st.bus.Stream(bus.StreamBlobs).Get(ctx, bus.Lookup{Last: subject})
	if err == nil && !ok {
		err = errors.New("it is missing")
	}
	return s.Data, err
}
